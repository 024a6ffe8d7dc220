// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/record/ProgramBuilder.h"

#include "planner/record/BuilderRecording.h"
#include "support/Array.h"
#include "support/JsonFields.h"
#include "support/Sha256.h"
#include "support/Spelling.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace mgpu::planner {

ProgramBuilder::ProgramBuilder(std::string name, uint32_t numDevices)
    : name(std::move(name)), numDevices(numDevices) {}
ProgramBuilder::~ProgramBuilder() = default;

tl::unexpected<Error> ProgramBuilder::refuse(std::string text,
                                             ErrorKind kind) const {
  return fail(kind, (current.text.empty() ? "" : current.text + ": ") +
                        std::move(text));
}

//===----------------------------------------------------------------------===//
// Buffers and kernels
//===----------------------------------------------------------------------===//

/// Whether the caller knows buffers of this kind by their names.
static bool isNamed(BuiltKind kind) {
  return kind == BuiltKind::Argument || kind == BuiltKind::Result ||
         kind == BuiltKind::External;
}

/// Why a buffer of this kind cannot be so; or "".
static std::string kindFault(const BuiltBufferSpec &spec, uint32_t numDevices) {
  const DeviceId device = spec.device;
  if (device.value < -1 ||
      (!device.isHost() && uint32_t(device.value) >= numDevices))
    return fmt::format("is on device {}, and there are {}", device.value,
                       numDevices);
  const bool onHost = spec.kind == BuiltKind::Argument ||
                      spec.kind == BuiltKind::Result ||
                      spec.kind == BuiltKind::Constant;
  if (onHost && !device.isHost())
    return "is an argument, a result or a constant, which are the host's: copy "
           "it to a buffer of the device";
  if (spec.kind == BuiltKind::Resident && device.isHost())
    return "is resident on the host: give a device, or make it an argument";
  if (spec.kind == BuiltKind::External && device.isHost())
    return "is the caller's memory of a device: name the device, or make it an "
           "argument, which is the host's";
  if (spec.role && spec.kind != BuiltKind::Argument)
    return "has a role, and only arguments have one";
  if (spec.role == ArgumentRole::Specialised)
    return "has role 'specialised', which is for numbers of MLIR programs: "
           "pass a launch the number";
  if (spec.role == ArgumentRole::Dynamic && !spec.shape.empty())
    return "has role 'dynamic', which is for single numbers: give it no shape";
  return "";
}

Result<BuiltBuffer> ProgramBuilder::addBuffer(BuiltBufferSpec spec) {
  if (spec.name.empty())
    return refuse("a buffer needs a name");
  auto wrong = [&](const std::string &why) {
    return refuse(fmt::format("buffer '{}' {}", spec.name, why));
  };
  if (std::string fault = kindFault(spec, numDevices); !fault.empty())
    return wrong(fault);
  auto bytes = arrayBytes(spec.elementType, spec.shape);
  if (!bytes)
    return wrong("cannot be: " + bytes.error().message);
  if (spec.kind == BuiltKind::Constant &&
      spec.contents.size() != uint64_t(*bytes))
    return wrong(fmt::format("has {} bytes, and {} are given", *bytes,
                             spec.contents.size()));
  // Names of arguments and results are the caller's handles.
  for (const Declared &other : buffers)
    if (other.spec.name == spec.name &&
        (isNamed(spec.kind) || isNamed(other.spec.kind)))
      return wrong("has the name of another buffer, and one of them is an "
                   "argument or result, which are known by name");
  if (isNamed(spec.kind) &&
      spec.name.find_first_not_of("0123456789") == std::string::npos)
    return wrong("has a name that reads as the number of an argument");
  const BuiltBuffer id{uint32_t(buffers.size())};
  buffers.push_back({std::move(spec), uint64_t(*bytes), {}});
  if (Result<void> added = declare({current, id}); !added) {
    buffers.pop_back();
    return fail(std::move(added.error()));
  }
  return id;
}

/// Memory of a device that is declared inside a loop is each trip's own; all
/// else is declared before the loop.
Result<void> ProgramBuilder::declare(Call buffer) {
  const BuiltBufferSpec &spec =
      buffers[std::get<BuiltBuffer>(buffer.what).value].spec;
  if (spec.kind == BuiltKind::Temporary && !spec.device.isHost())
    return add(std::move(buffer));
  std::shared_ptr<Loop> around = std::move(open);
  Result<void> added = add(std::move(buffer));
  open = std::move(around);
  return added;
}

Result<BuiltView> ProgramBuilder::whole(BuiltBuffer buffer) const {
  if (buffer.value >= buffers.size())
    return refuse(fmt::format("there is no buffer {}", buffer.value));
  const std::vector<int64_t> &shape = buffers[buffer.value].spec.shape;
  return BuiltView{buffer, 0, shape, rowMajorStrides(shape)};
}

Result<BuiltKernel> ProgramBuilder::addKernel(KernelSpec kernel) {
  auto *file = std::get_if<CudaFile>(&kernel.source);
  auto wrong = [&](const std::string &why) {
    return refuse(fmt::format("kernel '{}' {}", kernel.name, why));
  };
  if (!isIdentifier(kernel.name))
    return wrong("needs a name of letters, digits and '_'");
  if (!file ||
      (file->text.empty() && file->host.empty() && file->cubins.empty()))
    return wrong("has no source: give CUDA C++, cubins, or C++ for the host");
  if (!isIdentifier(file->entry) || !isIdentifier(file->hostEntry))
    return wrong("needs entries that are names of functions");
  if (kernel.block.volume() == 0)
    return wrong("has a block without threads");
  if (file->tunables.size() > mostKernelTunables)
    return wrong(fmt::format("has {} tunables, and {} are the most",
                             file->tunables.size(), mostKernelTunables));
  for (const KernelTunable &tunable : file->tunables)
    if (!isIdentifier(tunable.name) || tunable.values.empty())
      return wrong("has a tunable without values, or whose name is none");
  std::string first = kernel.name;
  auto isTaken = [&](const KernelSpec &other) {
    return other.name == kernel.name;
  };
  for (size_t k = 2; std::ranges::any_of(kernels, isTaken); ++k)
    kernel.name = fmt::format("{}_{}", first, k);
  kernels.push_back(std::move(kernel));
  hasParameters.push_back(false);
  return BuiltKernel{uint32_t(kernels.size() - 1)};
}

static std::string
describe(const std::vector<CudaFile::Parameter> &parameters) {
  std::vector<std::string> words;
  for (const CudaFile::Parameter &each : parameters)
    words.push_back(
        fmt::format("{}{}", toString(each.type), each.isPointer ? "*" : ""));
  return fmt::format("({})", fmt::join(words, ", "));
}

/// The first launch says what a kernel takes; later ones must give the same.
Result<void> ProgramBuilder::takeParameters(const BuiltLaunch &launch) {
  KernelSpec &kernel = kernels[launch.kernel.value];
  std::vector<CudaFile::Parameter> given;
  for (const BuiltArgument &argument : launch.arguments)
    if (auto *scalar = std::get_if<BuiltScalar>(&argument.value))
      given.push_back({scalar->type, false});
    else if (argument.isPassed)
      given.push_back({buffers[std::get<BuiltView>(argument.value).buffer.value]
                           .spec.elementType,
                       true});
  auto &file = std::get<CudaFile>(kernel.source);
  if (hasParameters[launch.kernel.value]) {
    if (given != file.parameters)
      return refuse(fmt::format("launches kernel '{}' with {}, and another "
                                "launch of it gives {}",
                                kernel.name, describe(given),
                                describe(file.parameters)));
    return {};
  }
  file.parameters = std::move(given);
  kernel.numArguments = uint32_t(file.parameters.size());
  kernel.location = current.text;
  Sha256 hash;
  hash.addField("mgpu built kernel 1").addField(JsonFields::text(file));
  hash.addField(file.text).addField(file.host);
  for (const auto &[arch, cubin] : file.cubins)
    hash.addField(arch).addField(cubin);
  for (uint32_t size : {kernel.block.x, kernel.block.y, kernel.block.z})
    hash.addField(std::to_string(size));
  kernel.hash = hash.hex();
  hasParameters[launch.kernel.value] = true;
  return {};
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

Result<void> ProgramBuilder::checkView(const BuiltView &view) const {
  if (view.buffer.value >= buffers.size())
    return refuse(fmt::format("there is no buffer {}", view.buffer.value));
  const Declared &buffer = buffers[view.buffer.value];
  if (buffer.state == Declared::State::OldLoopValue)
    return refuse("uses the value of a loop after the loop");
  if (view.sizes.size() != view.strides.size())
    return refuse(
        fmt::format("a view of buffer '{}' has {} sizes and {} strides",
                    buffer.spec.name, view.sizes.size(), view.strides.size()));
  constexpr int64_t most = int64_t(1) << 48; // no figure below overflows
  auto isSmall = [](int64_t figure) { return -most < figure && figure < most; };
  auto outside = [&](const std::string &how) {
    return refuse(
        fmt::format("reaches outside buffer '{}': {}", buffer.spec.name, how),
        ErrorKind::Invalid);
  };
  if (!isSmall(view.offset) || !std::ranges::all_of(view.sizes, isSmall) ||
      !std::ranges::all_of(view.strides, isSmall))
    return outside("a view of more than 2^48 elements");
  const Box box = boxOf({{}, view.offset, view.sizes, view.strides},
                        sizeBytes(buffer.spec.elementType));
  if (auto ok = checkBox(box); !ok)
    return outside(ok.error().message);
  auto [low, high] = box.byteRange();
  if (low < high && (low < 0 || uint64_t(high) > buffer.bytes))
    return outside(
        fmt::format("bytes {} to {} of {}", low, high, buffer.bytes));
  // An empty view's address counts as well.
  if (low < 0 || uint64_t(low) > buffer.bytes)
    return outside(
        fmt::format("it begins at byte {} of {}", low, buffer.bytes));
  return {};
}

Result<void> ProgramBuilder::checkLaunch(const BuiltLaunch &launch) const {
  if (launch.kernel.value >= kernels.size())
    return refuse(fmt::format("there is no kernel {}", launch.kernel.value));
  const std::string &kernel = kernels[launch.kernel.value].name;
  if (launch.device.value < 0 || uint32_t(launch.device.value) >= numDevices)
    return refuse(fmt::format("launches '{}' on device {}, and there are {}",
                              kernel, launch.device.value, numDevices));
  if (launch.grid.volume() == 0)
    return refuse(
        fmt::format("launches '{}' with a grid without blocks", kernel));
  auto isCost = [](double cost) { return cost >= 0 && std::isfinite(cost); };
  if (!isCost(launch.flops) || !isCost(launch.durationUs.value_or(0)))
    return refuse(
        fmt::format("launches '{}' with a cost that is no number of 0 "
                    "or more",
                    kernel));
  for (const BuiltArgument &argument : launch.arguments) {
    auto *view = std::get_if<BuiltView>(&argument.value);
    if (view)
      MGPU_TRY(checkView(*view));
    if (argument.isPassed && !view && (argument.reads || argument.writes))
      return refuse(
          fmt::format("launches '{}' with a number that it is to read "
                      "or write as memory",
                      kernel));
    if (!argument.isPassed && !view)
      return refuse(fmt::format(
          "launches '{}' with a number that is not passed", kernel));
  }
  return {};
}

Result<void> ProgramBuilder::launch(BuiltLaunch launch) {
  MGPU_TRY(checkLaunch(launch));
  const KernelSpec before = kernels[launch.kernel.value];
  const bool isFirst = !hasParameters[launch.kernel.value];
  MGPU_TRY(takeParameters(launch));
  const BuiltKernel kernel = launch.kernel;
  Result<void> added = add({current, std::move(launch)});
  if (!added && isFirst) {
    kernels[kernel.value] = before;
    hasParameters[kernel.value] = false;
  }
  return added;
}

Result<void> ProgramBuilder::copy(BuiltView destination, BuiltView source,
                                  std::string name) {
  MGPU_TRY(checkView(destination));
  MGPU_TRY(checkView(source));
  return add({current, Copy{std::move(destination), std::move(source),
                            name.empty() ? "copy" : std::move(name)}});
}

Result<void> ProgramBuilder::fill(BuiltView view,
                                  std::vector<std::byte> element) {
  MGPU_TRY(checkView(view));
  return add({current, Fill{std::move(view), std::move(element)}});
}

Result<void> ProgramBuilder::collective(BuiltCollective call) {
  const std::string_view kind = toString(call.kind);
  if (call.send.empty() || call.send.size() != call.receive.size())
    return refuse(fmt::format("{} needs as many views to send as to receive, "
                              "and at least one",
                              kind));
  if (call.kind == CollectiveKind::SendRecv && call.send.size() != 2)
    return refuse(
        fmt::format("{} has two members, a sender and a receiver, and "
                    "not {}",
                    kind, call.send.size()));
  for (size_t rank = 0; rank < call.send.size(); ++rank) {
    MGPU_TRY(checkView(call.send[rank]));
    MGPU_TRY(checkView(call.receive[rank]));
    const bool isEqual = call.kind == CollectiveKind::AllReduce ||
                         call.kind == CollectiveKind::Permute;
    if (isEqual && call.send[rank].sizes != call.receive[rank].sizes)
      return refuse(fmt::format("{}: rank {} sends a view of shape [{}] and "
                                "receives [{}]: make them equal",
                                kind, rank,
                                fmt::join(call.send[rank].sizes, ", "),
                                fmt::join(call.receive[rank].sizes, ", ")),
                    ErrorKind::Invalid);
  }
  return add({current, std::move(call)});
}

Result<BuiltBuffer> ProgramBuilder::beginLoop(uint64_t trips, int64_t first,
                                              int64_t step) {
  if (open)
    return refuse("a loop inside a loop: build the inner one by its trips",
                  ErrorKind::Unsupported);
  if (hasLoop)
    return refuse("a program has one loop; build the second by its trips",
                  ErrorKind::Unsupported);
  if (trips == 0)
    return refuse("a loop without trips: leave it out");
  const BuiltBuffer value{uint32_t(buffers.size())};
  BuiltBufferSpec spec;
  spec.name = "induction";
  spec.kind = BuiltKind::Temporary;
  spec.elementType = ElementType::I64;
  buffers.push_back({std::move(spec), 8, Declared::State::LoopValue});
  open = std::make_shared<Loop>(Loop{trips, first, step, value, current, {}});
  return value;
}

Result<std::shared_ptr<ProgramBuilder::Loop>> ProgramBuilder::closeLoop() {
  if (!open)
    return refuse("there is no loop to end");
  buffers[open->value.value].state = Declared::State::OldLoopValue;
  return std::exchange(open, nullptr);
}

std::set<uint32_t> ProgramBuilder::usesOf(const std::vector<Call> &calls) {
  std::set<uint32_t> used;
  auto use = [&](const BuiltView &view) { used.insert(view.buffer.value); };
  for (const Call &call : calls) {
    if (auto *launch = std::get_if<BuiltLaunch>(&call.what)) {
      for (const BuiltArgument &argument : launch->arguments)
        if (auto *view = std::get_if<BuiltView>(&argument.value))
          use(*view);
    } else if (auto *copy = std::get_if<Copy>(&call.what)) {
      use(copy->destination), use(copy->source);
    } else if (auto *fill = std::get_if<Fill>(&call.what)) {
      use(fill->view);
    } else if (auto *collective = std::get_if<BuiltCollective>(&call.what)) {
      std::ranges::for_each(collective->send, use);
      std::ranges::for_each(collective->receive, use);
    }
  }
  return used;
}

/// Takes the declarations of buffers that are not in `used` out of a loop.
std::vector<ProgramBuilder::Call>
ProgramBuilder::takeBuffers(Loop &loop, const std::set<uint32_t> &used) {
  std::vector<Call> kept, taken;
  for (Call &call : loop.body) {
    auto *buffer = std::get_if<BuiltBuffer>(&call.what);
    const bool stays = !buffer || used.contains(buffer->value);
    (stays ? kept : taken).push_back(std::move(call));
  }
  loop.body = std::move(kept);
  return taken;
}

/// The caller has the numbers of these, also where the loop is gone.
Result<void> ProgramBuilder::addAll(std::vector<Call> buffers) {
  for (Call &buffer : buffers)
    MGPU_TRY(add(std::move(buffer)));
  return {};
}

Result<void> ProgramBuilder::dropLoop() {
  MGPU_TRY_ASSIGN(std::shared_ptr<Loop> loop, closeLoop());
  return addAll(takeBuffers(*loop, {}));
}

Result<void> ProgramBuilder::endLoop() {
  MGPU_TRY_ASSIGN(std::shared_ptr<Loop> loop, closeLoop());
  std::vector<Call> unused = takeBuffers(*loop, usesOf(loop->body));
  if (Result<void> added = add({loop->place, loop}); !added) {
    MGPU_TRY(addAll(takeBuffers(*loop, {})));
    MGPU_TRY(addAll(std::move(unused)));
    return added;
  }
  hasLoop = true;
  return addAll(std::move(unused));
}

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

Result<BuilderRecording *> ProgramBuilder::live() {
  if (recording)
    return recording.get();
  auto fresh = std::make_unique<BuilderRecording>(*this);
  for (const Call &call : calls)
    MGPU_TRY(fresh->run(call));
  recording = std::move(fresh);
  return recording.get();
}

Result<void> ProgramBuilder::add(Call call) {
  made.reset();
  if (open) {
    open->body.push_back(std::move(call));
    return {};
  }
  MGPU_TRY_ASSIGN(BuilderRecording * into, live());
  if (Result<void> ok = into->run(call); !ok) {
    recording.reset();
    return ok;
  }
  calls.push_back(std::move(call));
  return {};
}

Result<const Program *> ProgramBuilder::program() {
  if (open)
    return refuse("the loop has not been ended");
  if (!made) {
    MGPU_TRY_ASSIGN(BuilderRecording * last, live());
    std::unique_ptr<BuilderRecording> finished = std::move(recording);
    MGPU_TRY_ASSIGN(made, last->finish());
  }
  return &*made;
}

} // namespace mgpu::planner
