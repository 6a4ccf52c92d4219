/**
 * The serving side of deferred map outputs, inside the NodeManager.
 *
 * <p>One fetch of a reducer uses these classes in this order: {@link
 * io.merganser.hadoop.service.OutputCatalog} finds the segments of the map outputs. {@link
 * io.merganser.hadoop.service.Admission} admits the fetch or turns it away before any answer. A
 * {@link io.merganser.hadoop.service.Batch} holds the grant while the answer is sent. A {@link
 * io.merganser.hadoop.service.MergeStream} gives Netty the bytes of one map output. Its {@link
 * io.merganser.hadoop.service.TakeoverMerge} gets them from the merge process ({@link
 * io.merganser.hadoop.service.MergeProcess}) or, from any byte on, from the same merge in Java.
 *
 * <p>Nothing here knows HTTP or the tokens of a job. Those are the matter of {@code
 * org.apache.hadoop.mapred.ActiveShuffleHandler} and the stock classes that it extends.
 */
package io.merganser.hadoop.service;
