package org.apache.kafka.streams.state.internals;

import java.lang.reflect.Field;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.streams.processor.internals.metrics.StreamsMetricsImpl;

/**
 * A store's record cache whose entries all weigh one, so that the size of a ThreadCache is a number of entries. It lives in
 * Kafka's own package, as the class that it changes is not public.
 */
public final class CountedCache extends NamedCache {
    private CountedCache(final String name, final StreamsMetricsImpl metrics) {
        super(name, metrics);
    }

    @Override
    synchronized long sizeInBytes() {
        return size();
    }

    /**
     * Lets {@code most} entries into the caches that share {@code held}, whose number it is. The caches are new and empty:
     * they were made when the stores named themselves.
     */
    public static void limit(final ThreadCache threadCache, final long most, final AtomicLong held) throws ReflectiveOperationException {
        share(threadCache, most, held);
        final StreamsMetricsImpl metrics = (StreamsMetricsImpl) field(ThreadCache.class, "metrics").get(threadCache);
        @SuppressWarnings("unchecked")
        final Map<String, NamedCache> caches = (Map<String, NamedCache>) field(ThreadCache.class, "caches").get(threadCache);
        for (final Map.Entry<String, NamedCache> entry : caches.entrySet()) {
            final CountedCache counted = new CountedCache(entry.getKey(), metrics);
            counted.setListener((ThreadCache.DirtyEntryFlushListener) field(NamedCache.class, "listener").get(entry.getValue()));
            entry.setValue(counted);
        }
    }

    /** Lets {@code most} bytes into the caches that share {@code held}, as Kafka's own cache counts them. */
    public static void share(final ThreadCache threadCache, final long most, final AtomicLong held) throws ReflectiveOperationException {
        threadCache.resize(most);
        field(ThreadCache.class, "sizeInBytes").set(threadCache, held);
    }

    /** Forgets all that the caches hold, as a process that is killed does. */
    public static void forget(final ThreadCache threadCache) throws ReflectiveOperationException {
        for (final Object name : ((Map<?, ?>) field(ThreadCache.class, "caches").get(threadCache)).keySet()) {
            threadCache.clear((String) name);
        }
    }

    private static Field field(final Class<?> owner, final String name) throws NoSuchFieldException {
        final Field field = owner.getDeclaredField(name);
        field.setAccessible(true);
        return field;
    }
}
