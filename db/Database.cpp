// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "db/Database.h"

#include "db/FileSystem.h"
#include "db/Statement.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <sqlite3.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace mgpu::db {

Database::Database(const std::string &name, Access access, Purpose purpose)
    : connection(std::make_unique<Connection>(name, access, purpose)) {}
Database::Database(Database &&) noexcept = default;
Database &Database::operator=(Database &&) noexcept = default;
Database::~Database() = default;

const std::string &Database::path() const { return connection->name; }
bool Database::isReadOnly() const { return connection->readOnly; }
sqlite3 *Database::get() const { return connection->handle; }

void Database::Connection::close() {
  for (auto &[sql, statement] : idle)
    sqlite3_finalize(statement);
  idle.clear();
  sqlite3_close_v2(handle);
  handle = nullptr;
}

/// The system's reason why `name` could not be opened to be written.
static std::string reasonNotOpened(const std::string &name, sqlite3 *handle) {
  int code = handle ? sqlite3_system_errno(handle) : 0;
  if (code == 0 && ::access(name.c_str(), W_OK) != 0)
    code = errno;
  return code != 0 ? std::strerror(code) : "its folder takes no new file";
}

static std::string_view damageOf(Purpose purpose) {
  switch (purpose) {
  case Purpose::Results:
    return "is damaged (`mgpu-tune db verify` says where): move it away or "
           "name another file, and what it held is measured again";
  case Purpose::Bundle:
    return "is damaged: make or copy the bundle again";
  case Purpose::Verify:
    break;
  }
  return "is damaged";
}

/// One sentence for what SQLite reports by `code`.
Error Database::Connection::errorOf(int code) const {
  const char *detail = handle ? sqlite3_errmsg(handle) : sqlite3_errstr(code);
  auto error = [&](ErrorKind kind, std::string_view what) {
    return Error{kind, fmt::format("'{}' {}", name, what)};
  };
  switch (code & 0xff) {
  case SQLITE_CORRUPT:
  case SQLITE_CONSTRAINT: // An index that disagrees with its table.
    return error(ErrorKind::Invalid, damageOf(purpose));
  case SQLITE_NOTADB:
    return error(
        ErrorKind::Invalid,
        purpose == Purpose::Bundle
            ? "is not a bundle, or its first page is damaged: make or "
              "copy the bundle again"
            : "is not a database of mgpu, or its first page is damaged: "
              "name another file");
  case SQLITE_FULL:
    return error(ErrorKind::Invalid, "cannot grow: its disk is full");
  case SQLITE_READONLY:
    return error(ErrorKind::Invalid, "cannot be written: it or its folder is "
                                     "read-only");
  case SQLITE_BUSY:
  case SQLITE_LOCKED:
    return error(ErrorKind::Invalid, "is held by another process: end it, or "
                                     "name another file");
  case SQLITE_PROTOCOL:
    return error(ErrorKind::Invalid, "lies on a file system without working "
                                     "locks: name a file on a local disk");
  case SQLITE_CANTOPEN:
  case SQLITE_PERM:
  case SQLITE_AUTH:
    if (access == Access::ReadOnly && purpose == Purpose::Results &&
        ::access(name.c_str(), F_OK) != 0 && errno == ENOENT)
      return error(ErrorKind::Usage,
                   "is not there: No such file or directory; nothing was tuned "
                   "into it yet, `mgpu-tune tune FILE --db ...` makes one");
    if (access == Access::ReadOnly || access == Access::Untrusted)
      return error(ErrorKind::Usage, "cannot be opened: give a file that is "
                                     "there and yours to read");
    return error(ErrorKind::Usage,
                 fmt::format("cannot be {}: {}",
                             access == Access::Create ? "opened or created"
                                                      : "opened to write",
                             reasonNotOpened(name, handle)));
  case SQLITE_IOERR:
    return error(ErrorKind::Invalid,
                 fmt::format("cannot be read or written ({}): its disk is full "
                             "or failing",
                             detail));
  case SQLITE_TOOBIG:
    return error(ErrorKind::Invalid, "cannot take a value that large");
  case SQLITE_NOMEM:
    return error(ErrorKind::Absent, "does not fit in memory");
  default:
    // Anyone may have changed such a file: its schema or format is wrong.
    if (access == Access::Untrusted)
      return error(ErrorKind::Invalid, fmt::format("{} (SQLite says: {})",
                                                   damageOf(purpose), detail));
    return error(ErrorKind::Internal,
                 fmt::format("refuses a query: {} (SQLite {})", detail, code));
  }
}

Error Database::lastError(int code) const { return connection->errorOf(code); }

Result<void> Database::execute(const std::string &sql) {
  int code = sqlite3_exec(get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK)
    return fail(lastError(code));
  return {};
}

Result<int64_t> Database::queryInteger(const std::string &sql) {
  MGPU_TRY_ASSIGN(Statement query, Statement::prepare(*this, sql));
  MGPU_TRY_ASSIGN(bool row, query.step());
  return row ? query.integer(0) : 0;
}

Result<std::string> Database::journalMode() {
  MGPU_TRY_ASSIGN(Statement query,
                  Statement::prepare(*this, "PRAGMA journal_mode"));
  MGPU_TRY_ASSIGN(bool row, query.step());
  return row ? query.text(0) : std::string();
}

static std::string folderOf(const std::string &path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

/// SQLite's name of a file that nobody writes: without locks and journals.
static std::string immutableUri(const std::string &path) {
  std::string uri = "file:";
  for (unsigned char c : std::filesystem::absolute(path).string())
    if (std::isalnum(c) || c == '/' || c == '.' || c == '_' || c == '-')
      uri += char(c);
    else
      uri += fmt::format("%{:02X}", c);
  return uri + "?immutable=1";
}

Result<void> Database::connect(const DatabaseOptions &options) {
  const std::string &name = path();
  std::error_code none;
  if (std::filesystem::is_directory(name, none))
    return fail(ErrorKind::Usage,
                fmt::format("'{}' is a folder: name a file in it", name));
  bool readOnly = isReadOnly();
  // The last who closes a file and may write it takes away the log and its
  // index; one who may not leaves them beside it. So a reader who could write
  // opens the file for that, and forbids itself to.
  const bool tidies = options.access == Access::ReadOnly &&
                      options.purpose == Purpose::Results &&
                      ::access(name.c_str(), W_OK) == 0 &&
                      ::access(folderOf(name).c_str(), W_OK) == 0;
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
  if (readOnly && !tidies)
    flags |= SQLITE_OPEN_READONLY;
  else
    flags |= SQLITE_OPEN_READWRITE;
  if (options.access == Access::Create)
    flags |= SQLITE_OPEN_CREATE;
  auto tryOpen = [&](const std::string &target, int extra) -> int {
    sqlite3 *raw = nullptr;
    int code = sqlite3_open_v2(target.c_str(), &raw, flags | extra, nullptr);
    connection->close();
    connection->handle = raw;
    if (code != SQLITE_OK)
      return code;
    sqlite3_extended_result_codes(raw, 1);
    sqlite3_busy_timeout(raw, int(options.patience.count()));
    // Nothing is read until the first statement.
    return sqlite3_exec(raw, "PRAGMA schema_version", nullptr, nullptr,
                        nullptr);
  };
  // A name that begins with "file:" would be taken for a URI, and ":memory:"
  // for none.
  std::string plain =
      std::filesystem::path(name).is_absolute() ? name : "./" + name;
  int code = tryOpen(plain, 0);
  if (code == SQLITE_OK)
    return tidies ? execute("PRAGMA query_only=ON") : Result<void>();
  int primary = code & 0xff;
  // A file left in WAL mode needs shared memory beside it even to be read; in
  // a folder that cannot be written, nobody else can be writing it either.
  if (readOnly && (primary == SQLITE_CANTOPEN || primary == SQLITE_READONLY) &&
      std::filesystem::is_regular_file(name, none) &&
      !std::filesystem::exists(name + "-wal", none))
    code = tryOpen(immutableUri(name), SQLITE_OPEN_URI);
  if (code != SQLITE_OK)
    return fail(lastError(code));
  return {};
}

Result<void> Database::harden() {
  // A file is data: nothing it says may run functions, write its own schema
  // or make us reserve what it claims to hold.
  sqlite3_db_config(get(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(get(), SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(get(), SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(get(), SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_limit(get(), SQLITE_LIMIT_LENGTH, 256 << 20);
  sqlite3_limit(get(), SQLITE_LIMIT_SQL_LENGTH, 1 << 20);
  sqlite3_limit(get(), SQLITE_LIMIT_ATTACHED, 1); // VACUUM needs it
  return execute("PRAGMA cell_size_check=ON; PRAGMA mmap_size=0;");
}

Result<void> Database::chooseJournal(Journal journal) {
  if (journal == Journal::Auto)
    journal = liesOnNetwork(path()) ? Journal::Rollback : Journal::Wal;
  MGPU_TRY_ASSIGN(std::string mode, journalMode());
  const char *wanted = journal == Journal::Wal ? "wal" : "delete";
  if (mode != wanted) {
    // With exclusive locks a file in WAL mode is read without shared memory.
    if (journal == Journal::Rollback)
      MGPU_TRY(execute("PRAGMA locking_mode=EXCLUSIVE"));
    MGPU_TRY(execute(fmt::format("PRAGMA journal_mode={}", wanted)));
    if (journal == Journal::Rollback)
      MGPU_TRY(execute("PRAGMA locking_mode=NORMAL; PRAGMA schema_version"));
  }
  // A killed process loses nothing; without FULL, a power cut would lose the
  // last results.
  return execute("PRAGMA synchronous=FULL");
}

Result<void> Database::checkPages() {
  MGPU_TRY_ASSIGN(Statement query,
                  Statement::prepare(*this, "PRAGMA quick_check(1)"));
  MGPU_TRY_ASSIGN(bool row, query.step());
  if (!row || query.text(0) != "ok")
    return fail(lastError(SQLITE_CORRUPT));
  return {};
}

Result<Database> Database::inMemory() {
  Database database(":memory:", Access::Create, Purpose::Results);
  sqlite3 *raw = nullptr;
  int code = sqlite3_open_v2(":memory:", &raw,
                             SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE |
                                 SQLITE_OPEN_NOMUTEX,
                             nullptr);
  database.connection->handle = raw;
  if (code != SQLITE_OK)
    return fail(database.lastError(code));
  return database;
}

Result<Database> Database::ofBytes(std::span<const std::byte> bytes,
                                   const std::string &name, Purpose purpose) {
  MGPU_TRY_ASSIGN(Database database, inMemory());
  Connection &connection = *database.connection;
  connection.name = name;
  connection.readOnly = true;
  connection.access = Access::Untrusted;
  connection.purpose = purpose;
  // SQLite only reads what it is told is read-only.
  auto *data =
      reinterpret_cast<unsigned char *>(const_cast<std::byte *>(bytes.data()));
  const auto size = sqlite3_int64(bytes.size());
  const int code = sqlite3_deserialize(database.get(), "main", data, size, size,
                                       SQLITE_DESERIALIZE_READONLY);
  if (code != SQLITE_OK)
    return fail(database.lastError(code));
  sqlite3_extended_result_codes(database.get(), 1);
  // Nothing was read yet. One in the mode of a log beside it has no log.
  const int read = sqlite3_exec(database.get(), "PRAGMA schema_version",
                                nullptr, nullptr, nullptr);
  if (read != SQLITE_OK)
    return fail(database.lastError(
        (read & 0xff) == SQLITE_CANTOPEN ? SQLITE_CORRUPT : read));
  MGPU_TRY(database.harden());
  MGPU_TRY(database.checkPages());
  return database;
}

Result<Database> Database::copyInMemory() {
  MGPU_TRY_ASSIGN(Database copy, inMemory());
  copy.connection->name = path();
  MGPU_TRY(copy.harden());
  sqlite3_backup *backup =
      sqlite3_backup_init(copy.get(), "main", get(), "main");
  if (!backup)
    return fail(copy.lastError(sqlite3_errcode(copy.get())));
  int code = sqlite3_backup_step(backup, -1);
  sqlite3_backup_finish(backup);
  if (code != SQLITE_DONE)
    return fail(copy.lastError(code));
  return copy;
}

Result<void> Database::freeze() {
  connection->readOnly = true;
  return execute("PRAGMA query_only=ON");
}

Result<Database> Database::open(const std::string &path,
                                const DatabaseOptions &options) {
  std::error_code error;
  if (options.access == Access::Create && path == defaultDatabasePath()) {
    std::filesystem::create_directories(
        std::filesystem::path(path).parent_path(), error);
    if (error)
      return fail(ErrorKind::Usage,
                  fmt::format("cannot make the folder of '{}': {}", path,
                              error.message()));
  }
  Database database(path, options.access, options.purpose);
  MGPU_TRY(database.connect(options));
  MGPU_TRY(database.harden());
  if (options.access == Access::Untrusted)
    MGPU_TRY(database.checkPages());
  if (!database.isReadOnly()) {
    // Changing the mode of a file that others open at the same moment does not
    // wait for them by itself.
    auto end = std::chrono::steady_clock::now() + options.patience;
    for (;;) {
      auto chosen = database.chooseJournal(options.journal);
      if (chosen)
        break;
      int code = sqlite3_errcode(database.get()) & 0xff;
      if ((code != SQLITE_BUSY && code != SQLITE_PROTOCOL) ||
          std::chrono::steady_clock::now() > end)
        return fail(chosen.error());
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  return database;
}

Result<Transaction> Transaction::write(Database &database) {
  MGPU_TRY(database.execute("BEGIN IMMEDIATE"));
  return Transaction(database);
}

Result<Transaction> Transaction::read(Database &database) {
  MGPU_TRY(database.execute("BEGIN"));
  return Transaction(database);
}

Transaction::~Transaction() {
  // Fails where SQLite has rolled back by itself, after a full disk.
  if (database)
    (void)database->execute("ROLLBACK");
}

Result<void> Transaction::commit() {
  MGPU_TRY(database->execute("COMMIT"));
  database = nullptr;
  return {};
}

} // namespace mgpu::db
