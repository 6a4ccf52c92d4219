/**
 * The serving side of deferred map outputs, inside the NodeManager.
 *
 * <p>One fetch of a reducer goes through it in this order: {@link
 * io.merganser.hadoop.service.OutputCatalog} finds what the asked map outputs are, {@link
 * io.merganser.hadoop.service.Admission} lets the fetch in or turns it away before any answer, a
 * {@link io.merganser.hadoop.service.Batch} holds what was granted while the answer goes out, and a
 * {@link io.merganser.hadoop.service.MergeStream} hands Netty the bytes of one map output at a
 * time. The bytes come from the merge process ({@link io.merganser.hadoop.service.MergeProcess})
 * or, from any byte on, from the same merge in Java.
 *
 * <p>Nothing here knows HTTP or the tokens of a job: that is {@code
 * org.apache.hadoop.mapred.ActiveShuffleHandler} and the stock classes that it extends.
 */
package io.merganser.hadoop.service;
