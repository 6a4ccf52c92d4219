/**
 * Merganser's Hadoop plugin: map outputs that are merged when they are fetched.
 *
 * <p>The classes that Hadoop loads by name need package-private members of Hadoop, so they are in
 * Hadoop's own packages: the collector and the shuffle service in {@code org.apache.hadoop.mapred},
 * the reduce side in {@code org.apache.hadoop.mapreduce.task.reduce}. Everything else is in
 * packages below this one.
 *
 * <pre>
 *   map task                         NodeManager                           reduce task
 *   mapred.DeferredMapOutputBuffer   mapred.ActiveShuffleHandler   HTTP    reduce.ActiveShuffle
 *     defer     may it be left?        service   admission          ---->    nativemerge, hadoop/jni
 *     manifest  what was left          a socket to the process, or segment
 *
 *   1. defer      A subclass of Hadoop's sort buffer writes the last spill. If all rules hold, it
 *                 writes a manifest and an index instead of merging. order describes how keys
 *                 compare, in words that Java and the process read.
 *   2. announce   The service adds a version to its metadata (capability); a task defers only if
 *                 it finds it.
 *   3. serve      A fetch is admitted within a budget and merged off the event loop, by the process
 *                 or by segment. Both give the same bytes, so segment can take over at any byte.
 *                 Lengths are known before the merge, since a segment holds only records between
 *                 its ends.
 *   4. read       One merge of all fetched files (reduce), in batches across JNI (nativemerge).
 *
 *   A map on the node of its block (node) reaches step 1 in another way. The mapper stays in the
 *   job; the reader of NodeInputFormat asks the node at the first record. If the node maps the
 *   split, the reader has no records. So a job is switched by configuration alone. Each step that
 *   can't be done throws OnHostException with a counted reason; then the job's own reader is
 *   opened. NodeMapOutput takes the spills, whole and checked, or leaves the map to the next
 *   collector; it never takes a part of them. SpilledOutput makes one output of the spills of the
 *   sort buffer and of the node.
 * </pre>
 */
package io.merganser.hadoop;
