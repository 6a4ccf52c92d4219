/** How a map task learns whether its node can merge when outputs are fetched. */
package io.merganser.hadoop.capability;
