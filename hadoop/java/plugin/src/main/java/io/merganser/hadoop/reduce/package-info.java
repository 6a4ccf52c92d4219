/** The reduce side, without the classes that must be in Hadoop's own packages. */
package io.merganser.hadoop.reduce;
