/** How the keys of a job compare, as words that a process without Hadoop understands. */
package io.merganser.hadoop.order;
