"""TPC-H's queries by Hive on Tez, as LTYARN ran them (section 7.2), on a real YARN: HiveServer2 from Maven's jars.

docs/decisions/hive-on-tez.md says which releases, and what they need on Java 17.
"""
