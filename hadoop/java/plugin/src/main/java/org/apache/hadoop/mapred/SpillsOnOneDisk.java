package org.apache.hadoop.mapred;

import java.io.File;
import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.TaskID;

/**
 * Puts all spills of a task on the disk of the first one, as long as there is room. Everything else
 * is as in the task's own {@link MapOutputFile}. Hadoop would spread the spills over all disks, and
 * an output that consists of its spills would be lost with any of these disks. Different tasks
 * still use different disks.
 */
final class SpillsOnOneDisk extends MapOutputFile {
  private final MapOutputFile stock;
  private Path directory;

  SpillsOnOneDisk(MapOutputFile stock) {
    this.stock = stock;
  }

  @Override
  public Path getSpillFileForWrite(int spillNumber, long size) throws IOException {
    Path spill = stock.getSpillFileForWrite(spillNumber, size);
    if (directory == null) {
      directory = spill.getParent();
    }
    File disk = new File(directory.toUri().getPath());
    boolean fits = disk.canWrite() && disk.getUsableSpace() > size;
    return fits ? new Path(directory, spill.getName()) : spill;
  }

  @Override
  public Path getOutputFile() throws IOException {
    return stock.getOutputFile();
  }

  @Override
  public Path getOutputFileForWrite(long size) throws IOException {
    return stock.getOutputFileForWrite(size);
  }

  @Override
  public Path getOutputFileForWriteInVolume(Path existing) {
    return stock.getOutputFileForWriteInVolume(existing);
  }

  @Override
  public Path getOutputIndexFile() throws IOException {
    return stock.getOutputIndexFile();
  }

  @Override
  public Path getOutputIndexFileForWrite(long size) throws IOException {
    return stock.getOutputIndexFileForWrite(size);
  }

  @Override
  public Path getOutputIndexFileForWriteInVolume(Path existing) {
    return stock.getOutputIndexFileForWriteInVolume(existing);
  }

  @Override
  public Path getSpillFile(int spillNumber) throws IOException {
    return stock.getSpillFile(spillNumber);
  }

  @Override
  public Path getSpillIndexFile(int spillNumber) throws IOException {
    return stock.getSpillIndexFile(spillNumber);
  }

  @Override
  public Path getSpillIndexFileForWrite(int spillNumber, long size) throws IOException {
    return stock.getSpillIndexFileForWrite(spillNumber, size);
  }

  @Override
  public Path getInputFile(int mapId) throws IOException {
    return stock.getInputFile(mapId);
  }

  @Override
  public Path getInputFileForWrite(TaskID mapId, long size) throws IOException {
    return stock.getInputFileForWrite(mapId, size);
  }

  @Override
  public void removeAll() throws IOException {
    stock.removeAll();
  }

  @Override
  public void setConf(Configuration conf) {
    stock.setConf(conf);
  }

  @Override
  public Configuration getConf() {
    return stock.getConf();
  }
}
