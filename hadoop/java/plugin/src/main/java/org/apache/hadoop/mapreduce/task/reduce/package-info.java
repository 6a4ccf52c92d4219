/**
 * The two classes of the reduce side that need package-private members of Hadoop's shuffle. The
 * other classes are in {@code io.merganser.hadoop.reduce}.
 */
package org.apache.hadoop.mapreduce.task.reduce;
