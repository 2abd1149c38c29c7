"""The record cache of KIP-63 in front of a store: many updates of one window become one."""
