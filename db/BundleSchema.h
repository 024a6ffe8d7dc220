// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DB_BUNDLESCHEMA_H
#define MGPU_DB_BUNDLESCHEMA_H

namespace mgpu::db {

/// Version 2 of the schema: programs, their plans, and their kernels in every
/// form. Large contents lie in `blobs` under their SHA-256.
inline constexpr const char *bundleTables = R"sql(
CREATE TABLE programs(
  id INTEGER PRIMARY KEY,
  entry TEXT NOT NULL,
  source TEXT NOT NULL,
  source_hash TEXT NOT NULL,
  version TEXT NOT NULL,
  options TEXT NOT NULL,
  seal INTEGER NOT NULL,
  text TEXT NOT NULL);

CREATE TABLE plans(
  id INTEGER PRIMARY KEY,
  program INTEGER NOT NULL,
  target TEXT NOT NULL,
  seal INTEGER NOT NULL,
  text TEXT NOT NULL);
CREATE INDEX plans_program ON plans(program);

CREATE TABLE kernel_images(
  program INTEGER NOT NULL,
  kernel INTEGER NOT NULL,
  form TEXT NOT NULL,
  target TEXT NOT NULL,
  blob TEXT NOT NULL,
  seal INTEGER NOT NULL,
  facts TEXT NOT NULL,
  PRIMARY KEY(program, kernel, form, target)) WITHOUT ROWID;
)sql";

} // namespace mgpu::db

#endif // MGPU_DB_BUNDLESCHEMA_H
