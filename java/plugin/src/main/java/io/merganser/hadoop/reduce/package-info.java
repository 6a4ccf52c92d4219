/** What a reduce task reads, other than the classes that must lie in Hadoop's own packages. */
package io.merganser.hadoop.reduce;
