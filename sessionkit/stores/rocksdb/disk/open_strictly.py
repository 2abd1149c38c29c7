"""RocksDB with the settings that make it honest; as a program, tries a folder that may hang, and imports little."""

from __future__ import annotations

import signal
import sys

from rocksdict import DBRecoveryMode, Options, Rdict

# A log is read again when the folder is opened after a crash; a small one fits well into the time limit.
LOG_BYTES = 16 << 20


def open_strictly(path: str, *, create: bool) -> Rdict:
    """The database in this folder.

    rocksdict's own defaults unpickle what they read. RocksDB's would take a log that is damaged in its middle for one
    that ends there; this mode forgives only a record that was cut off at the very end, as a crash does.
    """
    options = Options(raw_mode=True)
    options.create_if_missing(create)
    options.set_error_if_exists(create)
    options.set_paranoid_checks(True)
    options.set_wal_recovery_mode(DBRecoveryMode.tolerate_corrupted_tail_records())
    options.set_write_buffer_size(LOG_BYTES)
    options.set_max_total_wal_size(2 * LOG_BYTES)
    options.set_keep_log_file_num(2)
    return Rdict(path, options)


def try_open(path: str, limit_s: int) -> str:
    """RocksDB's error on opening the folder, "" if it opens. After `limit_s` seconds SIGALRM ends the process."""
    signal.alarm(limit_s)  # also where RocksDB's own code hangs, which no Python thread could stop
    try:
        open_strictly(path, create=False).close()
    except Exception as error:  # rocksdict raises no narrower class
        return str(error)[:500] or type(error).__name__
    finally:
        signal.alarm(0)
    return ""


if __name__ == "__main__":
    said = try_open(sys.argv[1], int(sys.argv[2]))
    sys.stdout.write(said)
    sys.exit(3 if said else 0)
