// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C interface. No exception leaves it; every failure is a status and a
// sentence.
#include "pipeline/c/mgt.h"

#include "pipeline/c/OpenedBundle.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <fmt/format.h>
#include <new>

using namespace mgpu;

struct mgt_program {
  std::unique_ptr<capture::OpenedBundle> bundle;
  std::vector<bool> needsValue, isWritten; ///< by argument
  bool isLoaded = false;

  const planner::Program &program() const { return bundle->program(); }
  size_t numArguments() const {
    return program().arguments.size() + program().results.size();
  }
  const planner::ProgramArgument &argument(size_t index) const {
    size_t count = program().arguments.size();
    return index < count ? program().arguments[index]
                         : program().results[index - count];
  }
};

namespace {

thread_local std::string lastError;

mgt_status failed(const Error &error) {
  lastError = error.message;
  return mgt_status(error.kind);
}

/// Runs `call`, which returns a Result<void>.
template <typename Call>
mgt_status guarded(Call call) {
  try {
    Result<void> done = call();
    return done ? MGT_OK : failed(done.error());
  } catch (const std::bad_alloc &) {
    lastError.clear();
    lastError.append("out of memory"); // within what a string holds by itself
    return MGT_ABSENT;
  } catch (const std::exception &error) {
    return failed({ErrorKind::Internal, error.what()});
  }
}

/// What a caller said, who may have been compiled against another header.
Result<mgt_options> optionsOf(const mgt_options *given) {
  mgt_options out{};
  if (!given)
    return out;
  // "nccl" has been there from the beginning.
  constexpr size_t least = offsetof(mgt_options, nccl) + sizeof out.nccl;
  if (given->size < least)
    return fail(ErrorKind::Usage,
                fmt::format("mgt_open_with: the options' size is {}: set it to "
                            "sizeof(mgt_options)",
                            given->size));
  std::memcpy(&out, given, std::min(given->size, sizeof out));
  const auto *bytes = reinterpret_cast<const unsigned char *>(given);
  if (std::any_of(bytes + std::min(given->size, sizeof out),
                  bytes + given->size, [](unsigned char b) { return b; }))
    return fail(ErrorKind::Unsupported,
                "mgt_open_with: the options have one that this version of "
                "libmgt does not know: use a newer one");
  return out;
}

Result<void> open(const char *path, const char *target,
                  const mgt_options *given, mgt_program **out) {
  if (!path || !out)
    return fail(ErrorKind::Usage,
                "mgt_open: path and program must not be null");
  *out = nullptr;
  MGPU_TRY_ASSIGN(const mgt_options options, optionsOf(given));
  auto made = std::make_unique<mgt_program>();
  MGPU_TRY_ASSIGN(made->bundle, capture::OpenedBundle::open(
                                    path, target ? target : "",
                                    options.nccl ? options.nccl : ""));
  std::vector<bool> reads = planner::readsFirst(made->program().dag);
  for (const planner::ProgramArgument &argument : made->program().arguments)
    made->needsValue.push_back(argument.buffer &&
                               reads[argument.buffer->value]);
  made->isWritten.resize(made->numArguments());
  *out = made.release();
  return {};
}

/// The argument or result of that name that has memory.
Result<size_t> find(const mgt_program *program, const char *name,
                    const char *call) {
  if (!program || !name)
    return fail(ErrorKind::Usage,
                fmt::format("{}: program and name must not be null", call));
  for (size_t k = 0; k < program->numArguments(); ++k) {
    const planner::ProgramArgument &argument = program->argument(k);
    if (argument.name != name)
      continue;
    if (argument.buffer)
      return k;
    return fail(ErrorKind::Usage,
                fmt::format("{}: '{}' was fixed to {} when the bundle was made",
                            call, name, argument.value));
  }
  return fail(ErrorKind::Usage,
              fmt::format("{}: the program has no argument '{}'", call, name));
}

Result<std::span<std::byte>> memoryOf(mgt_program *program, size_t index,
                                      const void *data, size_t bytes,
                                      const char *call) {
  const planner::ProgramArgument &argument = program->argument(index);
  std::span<std::byte> memory =
      program->bundle->runner().hostBuffer(*argument.buffer);
  if (bytes != memory.size() || (!data && bytes != 0))
    return fail(ErrorKind::Usage,
                fmt::format("{}: '{}' has {} bytes, and {} are given", call,
                            argument.name, memory.size(),
                            data ? std::to_string(bytes) : "none"));
  return memory;
}

Result<void> requireLoaded(const mgt_program *program, const char *call) {
  if (!program)
    return fail(ErrorKind::Usage,
                fmt::format("{}: program must not be null", call));
  if (!program->isLoaded)
    return fail(ErrorKind::Usage, fmt::format("{}: call mgt_load first", call));
  return {};
}

} // namespace

int mgt_version(void) { return MGT_VERSION; }

const char *mgt_error(void) { return lastError.c_str(); }

mgt_status mgt_open(const char *path, const char *target,
                    mgt_program **program) {
  return mgt_open_with(path, target, nullptr, program);
}

mgt_status mgt_open_with(const char *path, const char *target,
                         const mgt_options *options, mgt_program **program) {
  return guarded([&] { return open(path, target, options, program); });
}

void mgt_close(mgt_program *program) { delete program; }

size_t mgt_num_arguments(const mgt_program *program) {
  return program ? program->numArguments() : 0;
}

mgt_status mgt_get_argument(const mgt_program *program, size_t index,
                            mgt_argument *out) {
  return guarded([&]() -> Result<void> {
    if (!program || !out || index >= program->numArguments())
      return fail(
          ErrorKind::Usage,
          fmt::format("mgt_get_argument: there is no argument {}", index));
    const planner::ProgramArgument &argument = program->argument(index);
    // The names of types and roles are literals.
    *out = {
        argument.name.c_str(),
        toString(argument.role).data(),
        toString(argument.elementType).data(),
        argument.shape.size(),
        argument.shape.data(),
        argument.buffer
            ? size_t(program->program().dag.buffer(*argument.buffer).sizeBytes)
            : 0,
        argument.value.c_str(),
        index >= program->program().arguments.size()};
    return {};
  });
}

mgt_status mgt_write(mgt_program *program, const char *name, const void *data,
                     size_t bytes) {
  return guarded([&]() -> Result<void> {
    MGPU_TRY_ASSIGN(size_t index, find(program, name, "mgt_write"));
    MGPU_TRY_ASSIGN(auto memory,
                    memoryOf(program, index, data, bytes, "mgt_write"));
    if (bytes != 0)
      std::memcpy(memory.data(), data, bytes);
    program->isWritten[index] = true;
    return {};
  });
}

mgt_status mgt_read(mgt_program *program, const char *name, void *data,
                    size_t bytes) {
  return guarded([&]() -> Result<void> {
    MGPU_TRY_ASSIGN(size_t index, find(program, name, "mgt_read"));
    MGPU_TRY_ASSIGN(auto memory,
                    memoryOf(program, index, data, bytes, "mgt_read"));
    if (bytes != 0)
      std::memcpy(data, memory.data(), bytes);
    return {};
  });
}

mgt_status mgt_memory(mgt_program *program, const char *name, void **data,
                      size_t *bytes) {
  return guarded([&]() -> Result<void> {
    MGPU_TRY_ASSIGN(size_t index, find(program, name, "mgt_memory"));
    if (!data || !bytes)
      return fail(ErrorKind::Usage,
                  "mgt_memory: data and bytes must not be null");
    std::span<std::byte> memory =
        program->bundle->runner().hostBuffer(*program->argument(index).buffer);
    *data = memory.data();
    *bytes = memory.size();
    program->isWritten[index] = true;
    return {};
  });
}

mgt_status mgt_bind(mgt_program *program, const char *name, void *data,
                    size_t bytes) {
  return guarded([&]() -> Result<void> {
    MGPU_TRY_ASSIGN(size_t index, find(program, name, "mgt_bind"));
    MGPU_TRY(memoryOf(program, index, data, bytes, "mgt_bind"));
    MGPU_TRY(program->bundle->runner().bind(
        *program->argument(index).buffer,
        {static_cast<std::byte *>(data), bytes}));
    program->isWritten[index] = true;
    return {};
  });
}

mgt_status mgt_load(mgt_program *program) {
  return guarded([&]() -> Result<void> {
    if (!program)
      return fail(ErrorKind::Usage, "mgt_load: program must not be null");
    for (size_t k = 0; k < program->needsValue.size(); ++k)
      if (program->needsValue[k] && !program->isWritten[k])
        return fail(ErrorKind::Usage,
                    fmt::format("mgt_load: argument '{}' is read but has no "
                                "value; call mgt_write first",
                                program->argument(k).name));
    MGPU_TRY(program->bundle->runner().load());
    program->isLoaded = true;
    return {};
  });
}

mgt_status mgt_replay(mgt_program *program) {
  return guarded([&]() -> Result<void> {
    MGPU_TRY(requireLoaded(program, "mgt_replay"));
    return program->bundle->runner().replay();
  });
}

mgt_status mgt_fetch(mgt_program *program) {
  return guarded([&]() -> Result<void> {
    MGPU_TRY(requireLoaded(program, "mgt_fetch"));
    return program->bundle->runner().fetch();
  });
}
