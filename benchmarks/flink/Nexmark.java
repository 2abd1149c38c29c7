import java.nio.file.Path;
import java.util.Map;
import java.util.Scanner;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/**
 * Nexmark's queries in Flink SQL over a file of bids.
 *
 * Runs one for each line that it is given, and prints how many rows came out, and the sum of their first column.
 */
class Nexmark {
    private static final String BIDS = "create table bids (auction bigint, bidder bigint, price bigint, "
            + "`time` timestamp_ltz(3), watermark for `time` as `time` - interval '1' second) "
            + "with ('connector' = 'filesystem', 'format' = 'parquet', 'path' = '%s')";

    private static final String COUNTED = "select auction, count(*) as num, window_start, window_end from table("
            + "hop(table bids, descriptor(`time`), interval '2' second, interval '10' second)) "
            + "group by auction, window_start, window_end";

    private static final Map<String, String> QUERIES = Map.of(
            "q11", "select count(*) as num, bidder, window_start, window_end from table("
                    + "session(table bids partition by bidder, descriptor(`time`), interval '10' second)) "
                    + "group by bidder, window_start, window_end",
            "q5", "select counted.num, auction, counted.window_start from (" + COUNTED + ") as counted join ("
                    + "select max(num) as most, window_start, window_end from (" + COUNTED + ") "
                    + "group by window_start, window_end) as highest on counted.window_start = highest.window_start "
                    + "and counted.window_end = highest.window_end and counted.num >= highest.most",
            "q7", "select max(price) as num, window_start from table("
                    + "tumble(table bids, descriptor(`time`), interval '10' second)) group by window_start, window_end");

    public static void main(String[] asked) throws Exception {
        Configuration settings = new Configuration();
        settings.setString("table.local-time-zone", "UTC");
        settings.setString("pipeline.object-reuse", "true");
        TableEnvironment flink =
                TableEnvironment.create(EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(settings).build());
        flink.executeSql(String.format(BIDS, Path.of(asked[0]).toUri()));
        Scanner calls = new Scanner(System.in);
        while (calls.hasNextLine()) {
            calls.nextLine();
            long rows = 0, counts = 0;
            try (CloseableIterator<Row> found = flink.executeSql(QUERIES.get(asked[1])).collect()) {
                while (found.hasNext()) {
                    counts += (Long) found.next().getField(0);
                    rows++;
                }
            }
            System.out.println(rows + " " + counts);
        }
    }
}
