/** The file that a map task leaves in place of a merged output. */
package io.merganser.hadoop.manifest;
