#!/bin/sh
# entrypoint.sh resourcemanager|nodemanager|historyserver|namenode|datanode|
#               yarn ARGS...|examples ARGS...|distributedshell ARGS...|ANY COMMAND
set -eu
role=${1:-resourcemanager}
shift || true

# The web folders must exist on the class path, or HDFS does not start; the Capacity Scheduler finds its file there.
CLASSPATH="/opt/hadoop/conf:/etc/yarnfair/scheduler:/opt/hadoop/web:/opt/hadoop/lib/*"
OPENS="--add-opens java.base/java.lang=ALL-UNNAMED --add-opens java.base/java.util=ALL-UNNAMED --add-opens java.base/java.net=ALL-UNNAMED"
# Containers inherit these from the NodeManager (yarn.nodemanager.env-whitelist).
JAVA_HOME=$(dirname "$(dirname "$(readlink -f "$(command -v java)")")")
export JAVA_HOME HADOOP_CONF_DIR=/opt/hadoop/conf

start() {
  heap=$1
  main=$2
  shift 2
  # shellcheck disable=SC2086  # options are words
  exec java $OPENS -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx"${heap}m" ${JAVA_OPTS:-} \
    -Dlog4j.configuration=file:/opt/hadoop/conf/log4j.properties -cp "$CLASSPATH" "$main" "$@"
}

case "$role" in
  resourcemanager) start "${HEAP_MB:-256}" org.apache.hadoop.yarn.server.resourcemanager.ResourceManager ;;
  nodemanager)
    mkdir -p /var/lib/yarn/local /var/lib/yarn/logs
    start "${HEAP_MB:-128}" org.apache.hadoop.yarn.server.nodemanager.NodeManager ;;
  historyserver) start "${HEAP_MB:-192}" org.apache.hadoop.mapreduce.v2.hs.JobHistoryServer ;;
  namenode)
    mkdir -p /var/lib/yarn/name
    [ -d /var/lib/yarn/name/current ] || \
      java -Xmx128m -cp "$CLASSPATH" org.apache.hadoop.hdfs.server.namenode.NameNode -format -nonInteractive
    start "${HEAP_MB:-256}" org.apache.hadoop.hdfs.server.namenode.NameNode ;;
  datanode) start "${HEAP_MB:-128}" org.apache.hadoop.hdfs.server.datanode.DataNode ;;
  yarn) start 128 org.apache.hadoop.yarn.client.cli.ApplicationCLI "$@" ;;
  # Relative paths of a job must lead to storage that every container sees.
  examples)
    cd /shared
    start 128 org.apache.hadoop.examples.ExampleDriver "$@" ;;
  # Its client stages files below user.home, which every container must see.
  distributedshell)
    JAVA_OPTS="-Duser.home=/shared ${JAVA_OPTS:-}"
    start 128 org.apache.hadoop.yarn.applications.distributedshell.Client \
      -jar "$(ls /opt/hadoop/lib/hadoop-yarn-applications-distributedshell-*.jar)" "$@" ;;
  *) exec "$role" "$@" ;;
esac
