/** The rules that decide whether a map task defers its merge or merges as stock Hadoop does. */
package io.merganser.hadoop.defer;
