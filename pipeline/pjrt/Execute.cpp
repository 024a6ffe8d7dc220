// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An execution copies the arguments to where the program has them, replays it,
// and copies the results out; large ones, and all on GPUs, are used and made
// where they are. It has ended when its call returns.
#include "pipeline/pjrt/Buffer.h"
#include "pipeline/pjrt/Executable.h"
#include "pipeline/pjrt/Handlers.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

struct PJRT_ExecuteContext {};

namespace mgpu::pipeline::pjrt {

namespace {

using Args = PJRT_LoadedExecutable_Execute_Args;

/// The caller's options, as far as it knows them.
PJRT_ExecuteOptions optionsOf(const Args &args) {
  PJRT_ExecuteOptions options{};
  if (args.options)
    std::memcpy(static_cast<void *>(&options), args.options,
                std::min(args.options->struct_size, sizeof options));
  return options;
}

PJRT_Error *checkCall(const Args &args, const Signature &signature,
                      const PJRT_ExecuteOptions &options) {
  if (args.num_devices != signature.processes())
    return invalid(fmt::format("the executable is for {} devices, and the call "
                               "has lists of {}",
                               signature.processes(), args.num_devices));
  if (args.num_args != signature.arguments.size())
    return invalid(fmt::format("the executable takes {} arguments, and the "
                               "call has {}",
                               signature.arguments.size(), args.num_args));
  if (args.num_args > 0)
    MGPU_PJRT_NEEDS(argument_lists);
  if (!signature.results.empty())
    MGPU_PJRT_NEEDS(output_lists);
  for (size_t device = 0; device < args.num_devices; ++device)
    if (!signature.results.empty() && !args.output_lists[device])
      return invalid(fmt::format("output_lists[{}] is null", device));
  if (options.num_send_ops > 0 || options.num_recv_ops > 0 ||
      options.num_hlo_output_callbacks > 0)
    return unsupported("programs that send, receive or call back on the host "
                       "are refused");
  if (args.execute_device && args.num_devices != 1)
    return invalid("execute_device is of an executable for one device");
  if (args.execute_device && args.execute_device->gpu &&
      args.execute_device != args.executable->devices[0])
    return unsupported(
        "an executable runs on the GPU that it was compiled for");
  return nullptr;
}

/// Memory of buffers that the program uses. On the host each place has its own
/// again when this ends.
class Bound {
public:
  explicit Bound(mgt_program *program) : program(program) {}
  ~Bound() {
    for (const auto &[place, storage] : all)
      (void)mgt_bind(program, place->name.c_str(), place->own->address(),
                     place->bytes);
  }
  Bound(const Bound &) = delete;
  Bound &operator=(const Bound &) = delete;

  PJRT_Error *add(Place &place, std::shared_ptr<Storage> storage) {
    if (place.bound == storage)
      return nullptr;
    if (mgt_bind(program, place.name.c_str(), storage->address(),
                 place.bytes) != MGT_OK)
      return refuse(PJRT_Error_Code_INTERNAL, mgt_program_error(program));
    if (place.gpu)
      place.bound = std::move(storage);
    else
      all.emplace_back(&place, std::move(storage));
    return nullptr;
  }

  /// Makes the program's own memory the place's.
  PJRT_Error *useOwn(Place &place) {
    if (!place.own) {
      void *data = nullptr;
      size_t bytes = 0;
      if (mgt_memory(program, place.name.c_str(), &data, &bytes) != MGT_OK)
        return refuse(PJRT_Error_Code_RESOURCE_EXHAUSTED,
                      mgt_program_error(program));
      place.own = std::make_shared<Storage>(data, place.gpu, nullptr);
    }
    return place.gpu && place.bound ? add(place, place.own) : nullptr;
  }

private:
  mgt_program *program;
  std::vector<std::pair<const Place *, std::shared_ptr<Storage>>> all;
};

/// A buffer lies on the device that uses it.
PJRT_Error *checkDevice(const Args &args, size_t device, size_t argument,
                        const PJRT_Buffer &buffer) {
  const PJRT_Device *on = args.execute_device
                              ? args.execute_device
                              : args.executable->devices[device];
  if (buffer.memory->device->description->id == on->description->id)
    return nullptr;
  return invalid(fmt::format(
      "argument {} lies on device {}, and the executable "
      "takes it on device {}: copy it there",
      argument, buffer.memory->device->description->id, on->description->id));
}

/// Gives the program one device's arguments.
PJRT_Error *giveArguments(const Args &args, size_t device, Bound &bound) {
  const Signature &signature = args.executable->of->signature;
  for (size_t k = 0; k < args.num_args; ++k) {
    const PJRT_Buffer *buffer =
        args.argument_lists[device] ? args.argument_lists[device][k] : nullptr;
    if (!buffer)
      return invalid(
          fmt::format("argument {} of device {} is null", k, device));
    if (buffer->shape != signature.arguments[k])
      return invalid(fmt::format("argument {} is {}, and the executable takes "
                                 "{}",
                                 k, buffer->shape.text(),
                                 signature.arguments[k].text()));
    MGPU_PJRT_PASS(checkDevice(args, device, k, *buffer));
    auto storage = buffer->storage();
    if (!storage)
      return isGone(*buffer);
    if (buffer->ready != alreadyDone()) {
      buffer->ready->wait();
      MGPU_PJRT_PASS(buffer->ready->error());
    }
    Place &place = args.executable->arguments[device * args.num_args + k];
    if (place.binds(*storage)) {
      MGPU_PJRT_PASS(bound.add(place, std::move(storage)));
      continue;
    }
    MGPU_PJRT_PASS(bound.useOwn(place));
    MGPU_PJRT_TRY(place.own->take(*storage, place.bytes));
  }
  return nullptr;
}

/// Buffers of results, one device behind the other; they are destroyed unless
/// they are given.
using Made = std::vector<std::unique_ptr<PJRT_Buffer>>;

PJRT_Error *makeResults(const Args &args, Bound &bound, Made &made) {
  const Signature &signature = args.executable->of->signature;
  for (size_t device = 0; device < args.num_devices; ++device)
    for (const Shape &shape : signature.results) {
      PJRT_Device *on = args.execute_device ? args.execute_device
                                            : args.executable->devices[device];
      PJRT_Buffer *buffer = nullptr;
      MGPU_PJRT_PASS(makeBuffer(shape, placeOf(nullptr, on), &buffer));
      Place &place = args.executable->results[made.size()];
      made.emplace_back(buffer);
      if (auto storage = buffer->storage(); place.binds(*storage))
        MGPU_PJRT_PASS(bound.add(place, std::move(storage)));
      else
        MGPU_PJRT_PASS(bound.useOwn(place));
    }
  return nullptr;
}

PJRT_Error *replay(const Args &args, Made &made) {
  PJRT_LoadedExecutable &executable = *args.executable;
  std::lock_guard lock(executable.mutex);
  if (!executable.program)
    return refuse(PJRT_Error_Code_FAILED_PRECONDITION,
                  "the executable was deleted");
  Bound bound(executable.program);
  // First the results: their memory is new, and an argument may be a result of
  // the call before.
  MGPU_PJRT_PASS(makeResults(args, bound, made));
  for (size_t device = 0; device < args.num_devices; ++device)
    MGPU_PJRT_PASS(giveArguments(args, device, bound));
  if (!executable.isLoaded && mgt_load(executable.program) != MGT_OK)
    return refuse(PJRT_Error_Code_INTERNAL,
                  mgt_program_error(executable.program));
  executable.isLoaded = true;
  if (mgt_replay(executable.program) != MGT_OK)
    return refuse(PJRT_Error_Code_INTERNAL,
                  mgt_program_error(executable.program));
  for (size_t k = 0; k < made.size(); ++k)
    if (const Place &place = executable.results[k];
        !place.binds(*made[k]->storage()))
      MGPU_PJRT_TRY(made[k]->storage()->take(*place.own, place.bytes));
  return nullptr;
}

/// Ends the buffers that were donated.
void dropDonated(const Args &args, const PJRT_ExecuteOptions &options) {
  const Signature &signature = args.executable->of->signature;
  const int64_t *kept = options.non_donatable_input_indices;
  const size_t count = kept ? options.num_non_donatable_input_indices : 0;
  for (size_t k = 0; k < args.num_args; ++k)
    if (signature.donated[k] &&
        std::find(kept, kept + count, int64_t(k)) == kept + count)
      for (size_t device = 0; device < args.num_devices; ++device)
        args.argument_lists[device][k]->drop();
}

} // namespace

PJRT_Error *LoadedExecutable_Execute(Args &args) {
  MGPU_PJRT_NEEDS(executable);
  PJRT_LoadedExecutable &executable = *args.executable;
  const PJRT_ExecuteOptions options = optionsOf(args);
  MGPU_PJRT_PASS(checkCall(args, executable.of->signature, options));
  Made made;
  MGPU_PJRT_PASS(replay(args, made));
  dropDonated(args, options);
  const size_t count = executable.of->signature.results.size();
  for (size_t device = 0; device < args.num_devices; ++device) {
    for (size_t k = 0; k < count; ++k)
      args.output_lists[device][k] = made[device * count + k].release();
    if (args.device_complete_events)
      args.device_complete_events[device] = new PJRT_Event{alreadyDone()};
  }
  return nullptr;
}

PJRT_Error *ExecuteContext_Create(PJRT_ExecuteContext_Create_Args &args) {
  args.context = new PJRT_ExecuteContext;
  return nullptr;
}

PJRT_Error *ExecuteContext_Destroy(PJRT_ExecuteContext_Destroy_Args &args) {
  delete args.context;
  return nullptr;
}

} // namespace mgpu::pipeline::pjrt
