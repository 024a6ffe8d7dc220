// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/HostScope.h"

#include "dialect/mgpu/Diagnostics.h"
#include "dialect/mpmd/MpmdDialect.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace mgpu::planner {

using namespace mlir;

tl::unexpected<Error> reported(InFlightDiagnostic diagnostic, ErrorKind kind) {
  std::string text;
  if (Diagnostic *found = diagnostic.getUnderlyingDiagnostic())
    text = found->str();
  return fail(kind, std::move(text));
}

tl::unexpected<Error> notSupported(Operation *op, const Twine &why) {
  return reported(op->emitOpError(why), ErrorKind::Unsupported);
}

HostScope::HostScope(RecorderOptions options)
    : recorder([&] {
        options.sink = [this](const Finding &finding) { show(finding); };
        return std::move(options);
      }()) {}

/// The work of a pipeline that a location names.
static std::optional<PipelinePart> partOf(Location location) {
  mpmd::WorkAttr work = mpmd::workAt(location);
  if (!work)
    return std::nullopt;
  return PipelinePart{PipelinePart::Kind(work.getKind()),
                      uint32_t(work.getMicrobatch()),
                      uint32_t(work.getStage())};
}

Place HostScope::placeOf(Location location) {
  auto [at, isNew] = places.try_emplace(location);
  if (isNew) {
    at->second =
        recorder.place(ir::describeLocation(location), partOf(location));
    locations.push_back(location);
  }
  return at->second;
}

void HostScope::show(const Finding &finding) {
  auto locationOf = [&](Place place) { return locations[place.value - 1]; };
  InFlightDiagnostic diagnostic =
      !finding.isError      ? emitWarning(locationOf(finding.place))
      : finding.isAboutCall ? current->emitOpError()
                            : emitError(locationOf(finding.place));
  diagnostic << finding.text;
  for (const Finding::Note &note : finding.notes)
    diagnostic.attachNote(locationOf(note.place)) << note.text;
  if (finding.isError)
    lastErrorText = finding.text;
}

const HostValue &HostScope::valueOf(Value value) const {
  static const HostValue unknown;
  auto at = values.find(value);
  return at == values.end() ? unknown : at->second;
}

const Induction *HostScope::findInduction(Value value) const {
  auto *dynamic = std::get_if<DynamicValue>(&valueOf(value));
  return dynamic ? recorder.findInduction(dynamic->buffer) : nullptr;
}

Result<int64_t> HostScope::integerOf(Operation *op, Value value,
                                     const Twine &what) const {
  if (auto *attribute = std::get_if<Attribute>(&valueOf(value)))
    if (auto integer = dyn_cast<IntegerAttr>(*attribute))
      return integer.getValue().getSExtValue();
  if (findInduction(value))
    return reported(op->emitOpError(what) << " changes from trip to trip");
  if (std::holds_alternative<DynamicValue>(valueOf(value)))
    return reported(
        op->emitOpError(what)
        << " is a dynamic argument, which only kernels may read; give it "
           "the role specialised");
  return reported(op->emitOpError(what)
                  << " is not a constant after specialisation; give the scalar "
                     "arguments it depends on with --arg");
}

Result<int64_t> HostScope::integerOf(Operation *op, OpFoldResult value,
                                     const Twine &what) const {
  if (auto constant = getConstantIntValue(value))
    return *constant;
  return integerOf(op, cast<Value>(value), what);
}

Result<View> HostScope::memrefOf(Operation *op, Value value) {
  MGPU_TRY_ASSIGN(const View *view, viewOf(op, value));
  return *view;
}

Result<const View *> HostScope::viewOf(Operation *op, Value value) {
  auto *view = std::get_if<View>(&valueOf(value));
  if (!view)
    return reported(
        op->emitOpError("uses a memref whose origin cannot be followed"));
  MGPU_TRY(recorder.checkLive(view->buffer, placeOf(op->getLoc())));
  return view;
}

Result<DeviceId> HostScope::deviceOf(Operation *op, Value value) const {
  if (auto *device = std::get_if<DeviceId>(&valueOf(value)))
    return *device;
  return reported(
      op->emitOpError("uses a device handle whose origin cannot be followed"));
}

Result<SourceStream> HostScope::streamOf(Operation *op, Value value) const {
  if (auto *stream = std::get_if<SourceStream>(&valueOf(value)))
    return *stream;
  return reported(
      op->emitOpError("uses a stream handle whose origin cannot be followed"));
}

Result<CallSite> HostScope::siteOf(Operation *op, Value stream) {
  CallSite site{placeOf(op->getLoc())};
  if (!stream)
    return site;
  MGPU_TRY_ASSIGN(auto known, streamOf(op, stream));
  site.stream = known;
  return site;
}

BufferId HostScope::allocate(Value result, std::string name, DeviceId device,
                             BufferRole role, std::vector<std::byte> contents,
                             std::optional<std::vector<int64_t>> shape) {
  auto type = cast<MemRefType>(result.getType());
  BufferId buffer = recorder.addBuffer(
      std::move(name), device, role, *elementTypeOf(type.getElementType()),
      shape ? std::move(*shape) : type.getShape().vec(), std::move(contents));
  set(result, recorder.whole(buffer));
  return buffer;
}

} // namespace mgpu::planner
