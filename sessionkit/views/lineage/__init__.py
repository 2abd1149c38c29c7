"""Which window each record is in, and which sessions became one."""
