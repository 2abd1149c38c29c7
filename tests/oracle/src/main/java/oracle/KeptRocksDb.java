package oracle;

import java.util.Map;
import org.rocksdb.Options;

/** As light, but what was written is there when the store is opened again. */
public final class KeptRocksDb extends LightRocksDb {
    @Override
    public void setConfig(final String storeName, final Options options, final Map<String, Object> configs) {
        super.setConfig(storeName, options, configs);
        options.setAvoidFlushDuringShutdown(false);
    }
}
