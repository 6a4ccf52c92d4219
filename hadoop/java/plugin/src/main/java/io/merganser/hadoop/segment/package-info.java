/** Segments of spills in Hadoop's IFile form, and their merge. */
package io.merganser.hadoop.segment;
