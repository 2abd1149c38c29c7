package oracle;

import java.util.Map;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.rocksdb.InfoLogLevel;
import org.rocksdb.Options;

/** Spares RocksDB what no case can see: log files, and writing to disk at closing what is deleted right after. */
public class LightRocksDb implements RocksDBConfigSetter {
    @Override
    public void setConfig(final String storeName, final Options options, final Map<String, Object> configs) {
        options.setInfoLogLevel(InfoLogLevel.FATAL_LEVEL);
        options.setAvoidFlushDuringShutdown(true);
        options.setSkipStatsUpdateOnDbOpen(true);
        options.setMaxFileOpeningThreads(1);
        options.setStatsDumpPeriodSec(0);
        options.setStatsPersistPeriodSec(0);
        options.setAllowFAllocate(false);
        options.setManifestPreallocationSize(4096);
        options.setWriteBufferSize(256 * 1024);
        options.setArenaBlockSize(16 * 1024);
    }

    @Override
    public void close(final String storeName, final Options options) {
        // nothing of its own is open
    }
}
