// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "db/BundleStore.h"

#include "db/Database.h"
#include "db/RowSeals.h"
#include "db/Schema.h"
#include "db/SqliteBlobCache.h"
#include "db/Statement.h"
#include "support/FileIO.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>

namespace mgpu::db {

namespace {

constexpr int64_t theProgram = 1; ///< its id in a bundle
constexpr uint64_t smallBundle = 1 << 18;
constexpr uint64_t largestValue = 256 << 20; // the limit of Database::harden

int64_t sealOf(const ProgramRecord &program) {
  return Seal("programs")
      .add(theProgram)
      .add(program.entry)
      .add(program.source)
      .add(program.sourceHash)
      .add(program.version)
      .add(program.options)
      .add(program.text)
      .value();
}
int64_t sealOf(int64_t id, const PlanRecord &plan) {
  return Seal("plans")
      .add(id)
      .add(theProgram)
      .add(plan.target)
      .add(plan.text)
      .value();
}
int64_t sealOf(const ImageRecord &image) {
  return Seal("kernel_images")
      .add(theProgram)
      .add(int64_t(image.kernel))
      .add(image.form)
      .add(image.target)
      .add(image.blob)
      .add(image.facts)
      .value();
}

std::string_view bytesOf(const std::vector<std::byte> &bytes) {
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

/// A file of its own, gone with its owner.
class TemporaryFile {
public:
  TemporaryFile() {
    const char *parent = std::getenv("TMPDIR");
    folder = std::string(parent && *parent ? parent : "/tmp") +
             "/mgpu-bundle-XXXXXX";
    if (!::mkdtemp(folder.data()))
      folder.clear();
  }
  ~TemporaryFile() {
    std::error_code ignored;
    if (!folder.empty())
      std::filesystem::remove_all(folder, ignored);
  }
  TemporaryFile(const TemporaryFile &) = delete;
  TemporaryFile &operator=(const TemporaryFile &) = delete;

  bool isThere() const { return !folder.empty(); }
  std::string path() const { return folder + "/bundle"; }

private:
  std::string folder;
};

Result<void> fill(Database &database, const BundleRecord &record,
                  const std::map<std::string, std::vector<std::byte>> &blobs) {
  MGPU_TRY_ASSIGN(Transaction transaction, Transaction::write(database));
  MGPU_TRY_ASSIGN(
      Statement program,
      Statement::prepare(database,
                         "INSERT INTO programs(id, entry, source, source_hash, "
                         "version, options, seal, text) "
                         "VALUES(?, ?, ?, ?, ?, ?, ?, ?)"));
  const ProgramRecord &row = record.program;
  MGPU_TRY(program.bind(theProgram)
               .bind(row.entry)
               .bind(row.source)
               .bind(row.sourceHash)
               .bind(row.version)
               .bind(row.options)
               .bind(sealOf(row))
               .bind(row.text)
               .run());
  MGPU_TRY_ASSIGN(Statement plan,
                  Statement::prepare(database, "INSERT INTO plans(id, program, "
                                               "target, seal, text) "
                                               "VALUES(?, ?, ?, ?, ?)"));
  int64_t id = 0;
  for (const PlanRecord &each : record.plans) {
    ++id;
    MGPU_TRY(plan.bind(id)
                 .bind(theProgram)
                 .bind(each.target)
                 .bind(sealOf(id, each))
                 .bind(each.text)
                 .run());
    plan.reset();
  }
  MGPU_TRY_ASSIGN(
      Statement image,
      Statement::prepare(database,
                         "INSERT INTO kernel_images(program, kernel, form, "
                         "target, blob, seal, facts) "
                         "VALUES(?, ?, ?, ?, ?, ?, ?)"));
  for (const ImageRecord &each : record.images) {
    MGPU_TRY(image.bind(theProgram)
                 .bind(int64_t(each.kernel))
                 .bind(each.form)
                 .bind(each.target)
                 .bind(each.blob)
                 .bind(sealOf(each))
                 .bind(each.facts)
                 .run());
    image.reset();
  }
  // No time of use: two bundles of one program are the same bytes.
  MGPU_TRY_ASSIGN(
      Statement blob,
      Statement::prepare(database,
                         "INSERT INTO blobs(key, used_ms, bytes, hash, value) "
                         "VALUES(?, 0, ?, ?, ?)"));
  for (const auto &[hash, bytes] : blobs) {
    MGPU_TRY(blob.bind(std::string_view(hash))
                 .bind(int64_t(bytes.size()))
                 .bind(std::string_view(blobHash(hash, bytes)))
                 .bind(std::span<const std::byte>(bytes))
                 .run());
    blob.reset();
  }
  return transaction.commit();
}

} // namespace

Result<void>
writeBundle(const std::string &path, const BundleRecord &record,
            const std::map<std::string, std::vector<std::byte>> &blobs) {
  uint64_t total = record.program.text.size(), largest = total;
  for (const PlanRecord &plan : record.plans)
    largest = std::max<uint64_t>(largest, plan.text.size());
  for (const auto &[hash, blob] : blobs) {
    total += blob.size();
    largest = std::max<uint64_t>(largest, blob.size());
  }
  if (largest >= largestValue)
    return fail(ErrorKind::Unsupported,
                fmt::format("'{}' would hold a constant, plan or program of {} "
                            "bytes, and a bundle takes less than {} of each: "
                            "make large constants arguments",
                            path, largest, largestValue));
  TemporaryFile file;
  if (!file.isThere())
    return fail(ErrorKind::Absent,
                "no temporary directory could be made to write a bundle in; "
                "set TMPDIR to a writable directory");
  {
    DatabaseOptions options;
    options.journal = Journal::Rollback; // leaves one file, whole by itself
    MGPU_TRY_ASSIGN(Database database, Database::open(file.path(), options));
    // A page for each of some twenty tables and indexes is most of a small
    // bundle; chains of small ones would slow down a large one.
    if (total < smallBundle)
      MGPU_TRY(database.execute("PRAGMA page_size=1024"));
    MGPU_TRY(migrate(database));
    MGPU_TRY(fill(database, record, blobs));
  }
  MGPU_TRY_ASSIGN(std::vector<std::byte> bytes, readFile(file.path()));
  return writeFileAtomic(path, bytesOf(bytes));
}

bool isDatabaseFile(const std::string &path) {
  static constexpr char magic[] = "SQLite format 3"; // and its final zero
  // Opening must neither wait for the writer of a pipe nor read from one.
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    return false;
  char head[sizeof magic];
  ssize_t count = ::pread(descriptor, head, sizeof head, 0);
  ::close(descriptor);
  return count == ssize_t(sizeof head) &&
         std::memcmp(head, magic, sizeof magic) == 0;
}

Result<BundleStore> BundleStore::open(const std::string &path) {
  DatabaseOptions options;
  options.access = Access::Untrusted;
  options.purpose = Purpose::Bundle;
  MGPU_TRY_ASSIGN(Database database, Database::open(path, options));
  MGPU_TRY_ASSIGN(const uint64_t bytes, fileSize(path));
  return check(std::move(database), bytes);
}

Result<BundleStore> BundleStore::ofBytes(std::span<const std::byte> bytes,
                                         const std::string &name) {
  MGPU_TRY_ASSIGN(Database database,
                  Database::ofBytes(bytes, name, Purpose::Bundle));
  return check(std::move(database), bytes.size());
}

Result<BundleStore> BundleStore::check(Database database, uint64_t bytes) {
  BundleStore store(std::move(database));
  MGPU_TRY(store.checkVersion());
  MGPU_TRY(store.checkLength(bytes));
  MGPU_TRY(store.checkSchema());
  MGPU_TRY(store.read());
  return store;
}

static tl::unexpected<Error> damaged(const std::string &path,
                                     std::string_view what) {
  return fail(ErrorKind::Invalid,
              fmt::format("'{}' is damaged: {}; make or copy the bundle again",
                          path, what));
}

/// A bundle stays as it was made: what later versions add are other tables.
Result<void> BundleStore::checkVersion() {
  constexpr int64_t oldest = 2; // Schema.cpp
  const auto last = int64_t(migrations().size());
  MGPU_TRY_ASSIGN(int64_t id, database.queryInteger("PRAGMA application_id"));
  MGPU_TRY_ASSIGN(int64_t version,
                  database.queryInteger("PRAGMA user_version"));
  if (id != applicationId || version < oldest)
    return fail(ErrorKind::Invalid,
                fmt::format("'{}' is a database, but no bundle: name a file "
                            "that `mgpu-tune bundle` wrote",
                            database.path()));
  if (version > last)
    return fail(ErrorKind::Unsupported,
                fmt::format("'{}' has version {}; this mgpu reads bundles up "
                            "to {}: use a newer one, or make the bundle with "
                            "this one",
                            database.path(), version, last));
  return {};
}

/// SQLite takes a last page that is cut short for one that ends in zeros.
Result<void> BundleStore::checkLength(uint64_t bytes) {
  MGPU_TRY_ASSIGN(int64_t pages, database.queryInteger("PRAGMA page_count"));
  MGPU_TRY_ASSIGN(int64_t pageBytes, database.queryInteger("PRAGMA page_size"));
  if (bytes != uint64_t(pages) * uint64_t(pageBytes))
    return damaged(database.path(), "it is cut short");
  return {};
}

/// Columns computed by expressions, triggers and virtual tables are ways for a
/// file to run code of its choice; ours has none.
Result<void> BundleStore::checkSchema() {
  std::string ours;
  for (const char *step : migrations())
    ours += step;
  MGPU_TRY_ASSIGN(Statement tables,
                  Statement::prepare(database, "SELECT type, sql FROM "
                                               "sqlite_schema"));
  for (;;) {
    MGPU_TRY_ASSIGN(bool row, tables.step());
    if (!row)
      break;
    std::string type = tables.text(0), sql = tables.text(1);
    bool known =
        type == "table"
            ? !sql.empty() && ours.find(sql + ";") != std::string::npos
            : type == "index" &&
                  (sql.empty() || ours.find(sql + ";") != std::string::npos);
    if (!known)
      return fail(ErrorKind::Invalid,
                  fmt::format("'{}' is not a bundle of mgpu: it holds a {} "
                              "that is not ours",
                              database.path(), type));
  }
  MGPU_TRY_ASSIGN(Statement check,
                  Statement::prepare(database, "PRAGMA quick_check(1)"));
  MGPU_TRY_ASSIGN(bool row, check.step());
  if (!row || check.text(0) != "ok")
    return damaged(database.path(),
                   row ? check.text(0) : std::string("it cannot be checked"));
  return {};
}

Result<void> BundleStore::read() {
  MGPU_TRY_ASSIGN(Transaction transaction, Transaction::read(database));
  MGPU_TRY_ASSIGN(
      Statement program,
      Statement::prepare(database,
                         "SELECT entry, source, source_hash, version, options, "
                         "seal, text FROM programs WHERE id = ?"));
  MGPU_TRY_ASSIGN(bool found, program.bind(theProgram).step());
  if (!found)
    return fail(ErrorKind::Invalid,
                fmt::format("'{}' holds no program: name a file that "
                            "`mgpu-tune bundle` wrote",
                            database.path()));
  contents.program = {program.text(0), program.text(1), program.text(2),
                      program.text(3), program.text(4), program.text(6)};
  if (program.integer(5) != sealOf(contents.program))
    return damaged(database.path(), "its program has changed");
  MGPU_TRY_ASSIGN(Statement plans,
                  Statement::prepare(database,
                                     "SELECT id, target, seal, text FROM plans "
                                     "WHERE program = ? ORDER BY id"));
  plans.bind(theProgram);
  for (;;) {
    MGPU_TRY_ASSIGN(bool row, plans.step());
    if (!row)
      break;
    PlanRecord plan{plans.text(1), plans.text(3)};
    if (plans.integer(2) != sealOf(plans.integer(0), plan))
      return damaged(database.path(), "a plan has changed");
    contents.plans.push_back(std::move(plan));
  }
  MGPU_TRY_ASSIGN(
      Statement images,
      Statement::prepare(database,
                         "SELECT kernel, form, target, blob, seal, facts FROM "
                         "kernel_images WHERE program = ? "
                         "ORDER BY kernel, form, target"));
  images.bind(theProgram);
  for (;;) {
    MGPU_TRY_ASSIGN(bool row, images.step());
    if (!row)
      break;
    ImageRecord image{uint32_t(images.integer(0)), images.text(1),
                      images.text(2), images.text(5), images.text(3)};
    if (images.integer(0) != int64_t(image.kernel) ||
        images.integer(4) != sealOf(image))
      return damaged(database.path(), "its list of kernels has changed");
    contents.images.push_back(std::move(image));
  }
  return transaction.commit();
}

Result<std::vector<std::byte>> BundleStore::blob(const std::string &hash) {
  MGPU_TRY_ASSIGN(
      Statement query,
      Statement::prepare(database, "SELECT value FROM blobs WHERE key = ?"));
  MGPU_TRY_ASSIGN(bool row, query.bind(std::string_view(hash)).step());
  if (!row)
    return damaged(database.path(),
                   fmt::format("it lacks the bytes of hash {}", hash));
  std::vector<std::byte> bytes = query.blob(0);
  if (Sha256().add(bytesOf(bytes)).hex() != hash)
    return damaged(database.path(),
                   fmt::format("the bytes of hash {} have changed", hash));
  return bytes;
}

} // namespace mgpu::db
