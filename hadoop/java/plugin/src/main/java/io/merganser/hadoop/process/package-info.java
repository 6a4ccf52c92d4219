/** Connections to the processes {@code merganser hadoop serve} of this node. */
package io.merganser.hadoop.process;
