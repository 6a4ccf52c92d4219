/**
 * Merganser's Hadoop plugin: map outputs that are merged when they are fetched.
 *
 * <p>What Hadoop calls by name lies in Hadoop's own packages, where it finds the members it needs:
 * the collector and the shuffle service in {@code org.apache.hadoop.mapred}, the reduce side in
 * {@code org.apache.hadoop.mapreduce.task.reduce}. Everything else lies in packages under this one.
 */
package io.merganser.hadoop;
