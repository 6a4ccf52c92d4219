/** When a map task defers its merge, and when it merges as Hadoop does. */
package io.merganser.hadoop.defer;
