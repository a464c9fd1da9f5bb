#!/bin/sh
# hive.sh server|shell ARGS...      shell: a JDBC shell that is connected to the server
set -eu
role=${1:-server}
shift || true

work=/shared/hive
JAVA_HOME=$(dirname "$(dirname "$(readlink -f "$(command -v java)")")")
export JAVA_HOME HADOOP_CONF_DIR=/opt/hadoop/conf
# Hive 4.0.1 is built for Java 8 and 11.
options="-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
for package in java.lang java.lang.reflect java.util java.util.concurrent java.util.concurrent.atomic java.util.regex java.net java.io java.nio java.text java.time sun.nio.ch; do
  options="$options --add-opens=java.base/$package=ALL-UNNAMED"
done

case "$role" in
  server)
    # What is started new knows no table: its metastore is in memory of this container, data lie elsewhere.
    rm -rf "$work"
    mkdir -p "$work/staging" "$work/history" "$work/tmp"
    # Where the nodes find Tez.
    cp -r /opt/tez "$work/tez"
    cd "$work"
    # shellcheck disable=SC2086  # options are words
    exec java $options -Xmx"${HEAP_MB:-640}m" -Djava.io.tmpdir="$work/tmp" \
      -Dlog4j2.configurationFile=/opt/hive/conf/hive-log4j2.properties \
      -cp "/opt/hive/conf:/opt/hadoop/conf:/opt/hive/lib/*" org.apache.hive.service.server.HiveServer2 ;;
  shell)
    cd /tmp
    # shellcheck disable=SC2086  # options are words
    exec java $options -Xmx192m -cp "/opt/hive/lib/*" sqlline.SqlLine -d org.apache.hive.jdbc.HiveDriver \
      -u "jdbc:hive2://127.0.0.1:10000/" -n yarn -p none --isolation=TRANSACTION_NONE "$@" ;;
  *) exec "$role" "$@" ;;
esac
