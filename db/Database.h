// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DB_DATABASE_H
#define MGPU_DB_DATABASE_H

// One connection to an SQLite file. Used by one thread at a time, and never
// carried over a fork().

#include "support/Result.h"

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

struct sqlite3;

namespace mgpu::db {

enum class Access {
  ReadOnly,  ///< the file must be there
  Untrusted, ///< read-only, and checked as a whole before it is used
  ReadWrite, ///< the file must be there
  /// Made where it is not there; its folder is made only where it is the
  /// default one (db/FileSystem.h).
  Create,
};

/// The purpose a file is opened for decides what helps where it is damaged.
enum class Purpose {
  Results,
  Bundle,
  Verify, ///< to say how damaged it is
};

/// How SQLite keeps a transaction whole. WAL lets readers and a writer work at
/// the same time, but needs memory shared by all who have the file open, which
/// a network does not give.
enum class Journal {
  Auto, ///< WAL on local disks, else Rollback
  Wal,
  Rollback,
};

struct DatabaseOptions {
  Access access = Access::Create;
  Journal journal = Journal::Auto;
  Purpose purpose = Purpose::Results;
  /// How long to wait for another process that holds the file.
  std::chrono::milliseconds patience{30'000};
};

class Database {
public:
  /// Errors: Usage where the file cannot be opened, Invalid where it is not a
  /// SQLite file or damaged. `path` is a path, never a URI.
  static Result<Database> open(const std::string &path,
                               const DatabaseOptions &options = {});
  /// One that ends with the object.
  static Result<Database> inMemory();
  /// The bytes of a file, as Access::Untrusted has one. They outlive it; `name`
  /// is what messages call them.
  static Result<Database> ofBytes(std::span<const std::byte> bytes,
                                  const std::string &name, Purpose purpose);
  /// A copy of this one in memory, for changes that end with the object; it
  /// keeps the path.
  Result<Database> copyInMemory();
  /// Nothing is written from here on.
  Result<void> freeze();
  Database(Database &&) noexcept;
  Database &operator=(Database &&) noexcept;
  ~Database();

  /// Runs statements that return no rows, or none that matter.
  Result<void> execute(const std::string &sql);
  /// The first column of the first row of a query; 0 where it has none.
  Result<int64_t> queryInteger(const std::string &sql);

  const std::string &path() const;
  bool isReadOnly() const;
  /// "wal", "delete", ...
  Result<std::string> journalMode();
  /// SQLite's last error, with the file and the cure.
  Error lastError(int code) const;
  sqlite3 *get() const;

private:
  friend class Statement;
  /// Does not move with its Database: statements point to it.
  struct Connection;
  Database(const std::string &name, Access access, Purpose purpose);
  Result<void> connect(const DatabaseOptions &options);
  Result<void> harden();
  Result<void> chooseJournal(Journal journal);
  Result<void> checkPages();

  std::unique_ptr<Connection> connection;
};

// All or nothing: what was not committed is rolled back.

/// The database must outlive it, and has at most one at a time.
class Transaction {
public:
  /// Waits for the other writers. Taking the right to write at once, and not
  /// at the first change, is what makes waiting possible: a reader that wants
  /// to become the writer can only be refused.
  static Result<Transaction> write(Database &database);
  /// One state of the file for several queries.
  static Result<Transaction> read(Database &database);

  Transaction(Transaction &&other) noexcept
      : database(std::exchange(other.database, nullptr)) {}
  Transaction &operator=(Transaction &&) = delete;
  ~Transaction();

  Result<void> commit();

private:
  explicit Transaction(Database &database) : database(&database) {}

  Database *database; ///< null once it has ended
};

} // namespace mgpu::db

#endif // MGPU_DB_DATABASE_H
