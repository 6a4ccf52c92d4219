/**
 * Merganser's Hadoop plugin: map outputs that are merged when they are fetched.
 *
 * <p>The classes that Hadoop loads by name need package-private members of Hadoop, so they are in
 * Hadoop's own packages: the collector and the shuffle service in {@code org.apache.hadoop.mapred},
 * the reduce side in {@code org.apache.hadoop.mapreduce.task.reduce}. Everything else is in
 * packages below this one.
 */
package io.merganser.hadoop;
