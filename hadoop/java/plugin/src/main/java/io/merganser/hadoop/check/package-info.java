/** The command that reports to an operator what is wrong with a node. */
package io.merganser.hadoop.check;
