/** The job counters of this plugin. */
package io.merganser.hadoop.counter;
