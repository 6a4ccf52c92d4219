/**
 * The reduce side's two classes that need package-private members of Hadoop's shuffle; what can
 * live elsewhere is in {@code io.merganser.hadoop.reduce}.
 */
package org.apache.hadoop.mapreduce.task.reduce;
