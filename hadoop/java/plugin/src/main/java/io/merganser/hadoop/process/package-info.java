/** Connections to the processes {@code merganser serve} of this node. */
package io.merganser.hadoop.process;
