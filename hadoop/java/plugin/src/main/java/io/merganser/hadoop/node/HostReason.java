package io.merganser.hadoop.node;

/** The reasons for which a map runs on the host, exactly as in stock Hadoop. */
public enum HostReason {
  // The job and the task.

  /** The job has switched maps on nodes off. */
  SWITCHED_OFF,
  /** No socket of a node is named. */
  NO_SOCKET,
  /** A cluster with Kerberos or with block tokens, which the node can't check. */
  SECURE,
  /** Not the first attempt. An earlier one may have failed because its map ran on the node. */
  RETRY,
  /** The job's collector is not {@code NodeMapOutput}. */
  NO_COLLECTOR,
  /** The job has no reducers, so its maps write to the output format. */
  NO_REDUCERS,
  /** The mapper wrote records before it read any. */
  RECORDS_BEFORE,
  /** The input format isn't Hadoop's for lines of text. */
  UNKNOWN_INPUT,
  /** No program of the node is known to do the same as the mapper. */
  UNKNOWN_MAPPER,
  /** The combiner isn't known to do something that the node can do. */
  UNKNOWN_COMBINER,
  /** The keys or values are of a class that the node doesn't know. */
  UNKNOWN_TYPES,
  /** The partitioner isn't Hadoop's {@code HashPartitioner}. */
  UNKNOWN_PARTITIONER,
  /** The keys aren't sorted by {@code Text}'s own comparator. */
  UNKNOWN_ORDER,
  /** Map outputs are encrypted. */
  ENCRYPTED_OUTPUT,
  /** Too many reducers for the protocol. */
  MANY_PARTITIONS,

  // The input.

  /** The input file is compressed. */
  COMPRESSED_INPUT,
  /** A record delimiter that the node doesn't take. */
  DELIMITER,
  /** The job drops lines of nearly any length, or drops long ones and is of the old API. */
  LINE_LIMIT,
  /** The split has no bytes, or more than Hadoop's own reader counts. */
  SPLIT_SIZE,
  /** The file isn't in HDFS. */
  NOT_HDFS,
  /** The file is erasure-coded. */
  ERASURE_CODED,
  /** The file is in an encryption zone. */
  ENCRYPTED_INPUT,
  /** The file is being written. */
  UNDER_CONSTRUCTION,
  /** A block of the split has no replica here, or none that is finalized. */
  NO_LOCAL_REPLICA,
  /** The replica on this node has another generation stamp. */
  GENERATION,
  /** The replica on this node has another length. */
  LENGTH,
  /** The replica's checksums are of a kind that the node doesn't know. */
  CHECKSUM_KIND,
  /** The last line has too many bytes behind the split. */
  LONG_LINE,
  /** The blocks or the end of the last line couldn't be read from HDFS, or the file changed. */
  HDFS_FAILED,

  // The node.

  /** Nothing listens on the socket, or it may not be opened. */
  ABSENT,
  /** The node has no place or no memory. */
  BUSY,
  /** The node doesn't have the program, or it doesn't take the arguments or give these types. */
  PROGRAM,
  /** The task couldn't read the program that the job brings. */
  PROGRAM_FILE,
  /** The node has forgotten the program that the task had just sent. */
  PROGRAM_ABSENT,
  /** The node takes no programs from jobs. */
  NO_UPLOADS,
  /** The node would need more memory for this job. */
  MEMORY,
  /** The node's program failed. */
  PROGRAM_FAILED,
  /** The bytes of a block don't match its checksums. */
  DAMAGED_BLOCK,
  /** The node couldn't read a block. */
  READ_FAILED,
  /** A record is longer than the node's memory. */
  LONG_RECORD,
  /** The node found a mistake of its own. */
  MISTAKE,
  /** The node closed the connection, or was killed. */
  DIED,
  /** The node sent nothing for too long. */
  SILENT,
  /** The node doesn't speak the protocol of this version, or breaks it. */
  PROTOCOL,
  /** The node's answer isn't a map output: framing or checksums are wrong. */
  DAMAGED_ANSWER,
  /** The node made more spills than a task can merge. */
  MANY_SPILLS,
  /** The task couldn't write the node's answer to its local directories. */
  LOCAL_DISK;

  /** The name of the job counter, in the group {@code Merganser}. */
  public String counter() {
    return "MAPS_ON_HOST_" + name();
  }
}
