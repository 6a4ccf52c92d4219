package io.merganser.hadoop.config;

/** The names and defaults of all settings. */
public final class Keys {
  /** Whether map tasks defer their merge if they can. Read by map tasks. */
  public static final String DEFER = "merganser.shuffle.defer";

  /** The default of {@link #DEFER}. */
  public static final boolean DEFAULT_DEFER = true;

  /** The least average bytes of a record, key and value, for which a map task defers its merge. */
  public static final String MIN_RECORD_BYTES = "merganser.shuffle.defer.min-record-bytes";

  /** The default of {@link #MIN_RECORD_BYTES}. */
  public static final long DEFAULT_MIN_RECORD_BYTES = 0;

  /** Least average bytes of a spill's segment for which a map task defers its merge. */
  public static final String MIN_SEGMENT_BYTES = "merganser.shuffle.defer.min-segment-bytes";

  /** The default of {@link #MIN_SEGMENT_BYTES}. */
  public static final long DEFAULT_MIN_SEGMENT_BYTES = 64 << 10;

  /** Least spills for which a map task defers its merge; fewer than two are never deferred. */
  public static final String MIN_SPILLS = "merganser.shuffle.defer.min-spills";

  /** The default of {@link #MIN_SPILLS}. */
  public static final int DEFAULT_MIN_SPILLS = 2;

  /** Most spills for which a map task defers its merge. */
  public static final String MAX_SPILLS = "merganser.shuffle.defer.max-spills";

  /** The default of {@link #MAX_SPILLS}. */
  public static final int DEFAULT_MAX_SPILLS = 64;

  /**
   * Followed by the name of a comparator class. The value lists the fields of its keys, as {@code
   * io.merganser.hadoop.order.KeyOrder} describes them.
   */
  public static final String ORDER_PREFIX = "merganser.shuffle.order.";

  /** The Unix socket of the merge process; empty for merges in Java. Read by NodeManagers. */
  public static final String SOCKET = "merganser.shuffle.socket";

  /** Milliseconds for which the merge process may send nothing before Java takes over. */
  public static final String SOCKET_TIMEOUT = "merganser.shuffle.socket.timeout-ms";

  /** The default of {@link #SOCKET_TIMEOUT}. */
  public static final long DEFAULT_SOCKET_TIMEOUT = 20_000;

  /** Bytes of memory that all merges of a NodeManager together may take. */
  public static final String SERVICE_MEMORY = "merganser.shuffle.service.memory-bytes";

  /** The default of {@link #SERVICE_MEMORY}. */
  public static final long DEFAULT_SERVICE_MEMORY = 256 << 20;

  /** The merges that a NodeManager runs at once; further fetches are asked to come again. */
  public static final String SERVICE_MERGES = "merganser.shuffle.service.merges";

  /** The default of {@link #SERVICE_MERGES}: two per processor. */
  public static final int DEFAULT_SERVICE_MERGES = 0;

  /**
   * Seconds after which a fetch that waits for admission is turned away, and the least seconds
   * after which it comes again.
   */
  public static final String RETRY_SECONDS = "merganser.shuffle.service.retry-seconds";

  /** The default of {@link #RETRY_SECONDS}. */
  public static final int DEFAULT_RETRY_SECONDS = 1;

  /**
   * Seconds after which a reducer that does not read loses its merge to a fetch that waits. It gets
   * the rest when it reads again.
   */
  public static final String STALLED_SECONDS = "merganser.shuffle.service.stalled-seconds";

  /** The default of {@link #STALLED_SECONDS}. */
  public static final int DEFAULT_STALLED_SECONDS = 10;

  /** Bytes of memory for the manifests that a NodeManager remembers. */
  public static final String MANIFEST_CACHE = "merganser.shuffle.service.manifest-cache-bytes";

  /** The default of {@link #MANIFEST_CACHE}. */
  public static final long DEFAULT_MANIFEST_CACHE = 32 << 20;

  /** Whether the reduce side merges with the native library if it loads. */
  public static final String REDUCE_NATIVE = "merganser.reduce.native";

  /** The default of {@link #REDUCE_NATIVE}. */
  public static final boolean DEFAULT_REDUCE_NATIVE = true;

  /**
   * Bytes of memory that the merge of fetched files may take in a reduce task. The native merge
   * takes them outside the heap, and 32 KiB per file unless its keys are longer.
   */
  public static final String REDUCE_MEMORY = "merganser.reduce.merge.memory-bytes";

  /** The default of {@link #REDUCE_MEMORY}. */
  public static final long DEFAULT_REDUCE_MEMORY = 64 << 20;

  /** Whether maps run on the node where their blocks are, if they can. Read by map tasks. */
  public static final String NODE_MAP = "merganser.node.map";

  /** The default of {@link #NODE_MAP}. */
  public static final boolean DEFAULT_NODE_MAP = true;

  /** The Unix socket of {@code merganser hadoop serve --hdfs}. Read by map tasks. */
  public static final String NODE_SOCKET = "merganser.node.socket";

  /** The job's own input format; by default Hadoop's for lines of text. */
  public static final String NODE_INPUT_FORMAT = "merganser.node.inputformat";

  /**
   * The name of the node's program that does what the job's mapper does, or {@code wasm:FILE} for
   * one in WebAssembly that the job brings: a file in the task's working directory, as the
   * distributed cache puts it there, or in the class path. Not needed for mappers that are known.
   */
  public static final String NODE_SSDLET = "merganser.node.ssdlet";

  /**
   * The arguments of {@link #NODE_SSDLET}, a JSON object; one that the job brings takes any text.
   */
  public static final String NODE_ARGUMENTS = "merganser.node.arguments";

  /** The effect of the job's combiner, {@code sum} or {@code distinct}; known ones need none. */
  public static final String NODE_COMBINE = "merganser.node.combine";

  /**
   * Milliseconds for which the node may send nothing, beyond {@link #NODE_PATIENCE}, before the map
   * runs on the host.
   */
  public static final String NODE_TIMEOUT = "merganser.node.timeout-ms";

  /**
   * The default of {@link #NODE_TIMEOUT}. A node that maps sends something about once a second, but
   * not while one record is read or the table is sorted.
   */
  public static final long DEFAULT_NODE_TIMEOUT = 60_000;

  /** Milliseconds for which a map waits for a place on the node before it runs on the host. */
  public static final String NODE_PATIENCE = "merganser.node.patience-ms";

  /** The default of {@link #NODE_PATIENCE}. */
  public static final int DEFAULT_NODE_PATIENCE = 5_000;

  /** Bytes of memory that a map may take on the node; 0: {@code io.sort.mb}, at least 16 MiB. */
  public static final String NODE_MEMORY = "merganser.node.memory-bytes";

  /** The default of {@link #NODE_MEMORY}. */
  public static final long DEFAULT_NODE_MEMORY = 0;

  private Keys() {}
}
