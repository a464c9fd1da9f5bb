"""The interfaces of Hadoop YARN: REST, RPC, files, and both schedulers' settings."""
