// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Launches whose kernel is a file of CUDA C++.
#include "planner/import/KernelOutline.h"

#include "dialect/mgpu/MgpuDialect.h"
#include "support/FileIO.h"
#include "support/JsonFields.h"
#include "support/Sha256.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

namespace mgpu::planner {

using namespace mlir;

namespace {

bool isWord(char c) { return llvm::isAlnum(c) || c == '_'; }

/// The text with what is in comments and literals made blank.
std::string withoutComments(StringRef text) {
  std::string out = text.str();
  for (size_t at = 0; at < out.size();) {
    size_t end = at + 1;
    bool blank = true;
    if (text.substr(at).starts_with("//")) {
      end = text.find('\n', at);
    } else if (text.substr(at).starts_with("/*")) {
      end = text.find("*/", at + 2);
      end = end == StringRef::npos ? end : end + 2;
    } else if (text[at] == '"' ||
               (text[at] == '\'' && !(at > 0 && llvm::isAlnum(text[at - 1])))) {
      while (end < text.size() && text[end] != text[at] && text[end] != '\n')
        end += text[end] == '\\' ? 2 : 1;
      ++end;
    } else {
      blank = false;
    }
    end = std::min(end, out.size());
    for (; at < end; ++at)
      if (blank && out[at] != '\n')
        out[at] = ' ';
  }
  return out;
}

/// How many parameters the list that opens at `open` has; none where it does
/// not close.
std::optional<size_t> countParameters(StringRef text, size_t open) {
  size_t commas = 0;
  bool isEmpty = true;
  int depth = 0, angles = 0;
  for (size_t at = open; at < text.size(); ++at) {
    char c = text[at];
    if (c == '(' || c == '[' || c == '{')
      ++depth;
    else if (c == ')' || c == ']' || c == '}')
      --depth;
    else if (c == '<' || c == '>')
      angles += c == '<' ? 1 : -1;
    else if (c == ',' && depth == 1 && angles == 0)
      ++commas;
    if (depth == 0) {
      bool isVoid = text.slice(open + 1, at).trim() == "void";
      return isEmpty || isVoid ? 0 : commas + 1;
    }
    isEmpty &= at == open || llvm::isSpace(c);
  }
  return std::nullopt;
}

/// The entry that a file has, as far as that shows without a preprocessor.
struct EntryFound {
  bool isNamed = false;                 ///< the word is there
  llvm::SmallVector<size_t> parameters; ///< of each __global__ of that name
};

EntryFound findEntry(StringRef source, StringRef entry) {
  std::string blanked = withoutComments(source);
  StringRef text(blanked);
  EntryFound found;
  for (size_t at = text.find(entry); at != StringRef::npos;
       at = text.find(entry, at + 1)) {
    size_t end = at + entry.size();
    if ((at > 0 && isWord(text[at - 1])) ||
        (end < text.size() && isWord(text[end])))
      continue;
    found.isNamed = true;
    size_t open = text.find_first_not_of(" \t\r\n", end);
    // Since the last statement or body.
    size_t begin = text.find_last_of(";}#", at);
    StringRef before = text.slice(begin == StringRef::npos ? 0 : begin, at);
    if (open == StringRef::npos || text[open] != '(' ||
        !before.contains("__global__"))
      continue;
    if (auto count = countParameters(text, open))
      found.parameters.push_back(*count);
  }
  return found;
}

/// Whether a line includes a file by its whole path.
bool includesWholePath(StringRef text) {
  for (StringRef line : llvm::split(text, '\n')) {
    line = line.ltrim(" \t");
    if (!line.consume_front("#"))
      continue;
    line = line.ltrim(" \t");
    if (!line.consume_front("include"))
      continue;
    line = line.ltrim(" \t");
    if (line.starts_with("\"/") || line.starts_with("</"))
      return true;
  }
  return false;
}

/// The path of a launch's file, relative ones from where the launch is.
std::string pathOf(ir::LaunchOp launch) {
  StringRef source = cast<StringAttr>(launch->getAttr("source")).getValue();
  if (llvm::sys::path::is_absolute(source))
    return source.str();
  StringRef folder;
  launch.getLoc()->walk([&](Location inner) {
    auto file = dyn_cast<FileLineColLoc>(inner);
    if (!file)
      return WalkResult::advance();
    folder = llvm::sys::path::parent_path(file.getFilename().getValue());
    return WalkResult::interrupt();
  });
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, source);
  return path.str().str();
}

/// Kernels that are compiled already, by architecture.
std::map<std::string, std::string> objectsOf(ir::LaunchOp launch) {
  std::map<std::string, std::string> objects;
  if (auto all = launch->getAttrOfType<DictionaryAttr>("objects"))
    for (NamedAttribute each : all)
      objects.emplace(each.getName().str(),
                      cast<StringAttr>(each.getValue()).getValue().str());
  return objects;
}

/// An error at a launch, in words that fit a custom call that became one.
InFlightDiagnostic refuse(ir::LaunchOp launch, StringRef words) {
  return emitError(launch.getLoc()) << "the launch " << words;
}

/// The text of the launch's file, with the entry it names.
FailureOr<StringRef> readSource(ir::LaunchOp launch,
                                llvm::StringMap<std::string> &files,
                                const std::string &path) {
  auto at = files.find(path);
  if (at == files.end()) {
    constexpr uint64_t most = 16 << 20;
    auto bytes = readFile(path, most, most);
    if (!bytes)
      return refuse(launch, "cannot read its kernel: ")
             << bytes.error().message;
    std::string text(reinterpret_cast<const char *>(bytes->data()),
                     bytes->size());
    if (text.find('\0') != std::string::npos)
      return refuse(launch, "takes its kernel from '")
             << path << "', which is not text";
    // A kernel is known by the text of this file alone.
    if (includesWholePath(text))
      return refuse(launch, "takes its kernel from '")
             << path
             << "', which includes a file by its whole path: only the CUDA "
                "toolkit's headers can be included, by their names";
    if (StringRef(text).trim().empty())
      return refuse(launch, "takes its kernel from '")
             << path << "', which is empty";
    at = files.try_emplace(path, std::move(text)).first;
  }
  StringRef text = at->second;
  StringRef entry = cast<StringAttr>(launch->getAttr("entry")).getValue();
  EntryFound found = findEntry(text, entry);
  if (!found.isNamed)
    return refuse(launch, "names the kernel '")
           << entry << "', but '" << path << "' has none: declare it extern "
           << "\"C\" __global__ there";
  size_t given = launch.getArgs().size();
  if (!found.parameters.empty() && !llvm::is_contained(found.parameters, given))
    return refuse(launch, "gives ")
           << given << (given == 1 ? " argument" : " arguments")
           << ", but the kernel '" << entry << "' in '" << path << "' takes "
           << found.parameters.front();
  return text;
}

/// The function that computes what the kernel does; null where none is named.
FailureOr<func::FuncOp> findReference(ir::LaunchOp launch,
                                      HostValueOf valueOf) {
  auto name = launch->getAttrOfType<FlatSymbolRefAttr>("reference");
  if (!name)
    return func::FuncOp();
  auto function =
      launch->getParentOfType<ModuleOp>().lookupSymbol<func::FuncOp>(name);
  if (!function || function.isExternal())
    return launch.emitOpError("names the reference ")
           << name << ", which is not a function with a body in this module";
  if (function.getNumArguments() != launch.getArgs().size() ||
      function.getNumResults() != 0)
    return launch.emitOpError("names the reference ")
           << name << ", which must take the launch's "
           << launch.getArgs().size() << " arguments and return nothing";
  for (auto [k, arg] : llvm::enumerate(launch.getArgs())) {
    Type wanted = arg.getType();
    const HostValue &value = valueOf(arg);
    if (auto *view = std::get_if<View>(&value)) {
      if (view->strides != rowMajorStrides(view->sizes))
        return launch.emitOpError("argument ")
               << k << " has gaps between its elements, and a reference takes "
               << "memrefs without";
      wanted = MemRefType::get(
          view->sizes, cast<MemRefType>(arg.getType()).getElementType());
    }
    if (function.getArgumentTypes()[k] != wanted)
      return launch.emitOpError("argument ")
             << k << " of its reference " << name << " must be " << wanted
             << ", not " << function.getArgumentTypes()[k];
  }
  return function;
}

/// Reads the arguments that the launch passes, and their types.
LogicalResult readArguments(ir::LaunchOp launch, HostValueOf valueOf,
                            std::vector<KernelArgument> &arguments,
                            std::vector<CudaFile::Parameter> &parameters) {
  for (auto [k, arg] : llvm::enumerate(launch.getArgs())) {
    const HostValue &value = valueOf(arg);
    auto type = elementTypeOf(getElementTypeOrSelf(arg));
    if (!type)
      return launch.emitOpError("argument ")
             << k << " has type " << arg.getType()
             << "; a kernel takes memrefs, and numbers that CUDA C++ has";
    if (auto *view = std::get_if<View>(&value)) {
      arguments.push_back(
          {view->buffer, view->offset * int64_t(sizeBytes(*type))});
      parameters.push_back({*type, true});
    } else if (auto *scalar = std::get_if<Attribute>(&value)) {
      arguments.push_back({bitsOf(*scalar), 0});
      parameters.push_back({*type, false});
    } else {
      return launch.emitOpError("argument ")
             << k << " is not known when the program is captured; pass "
             << "memrefs and numbers";
    }
  }
  return success();
}

/// The reference as a kernel of its own.
FailureOr<OwningOpRef<ModuleOp>> referenceModule(ir::LaunchOp launch,
                                                 func::FuncOp reference,
                                                 int64_t dynamicSharedBytes) {
  auto program = launch->getParentOfType<ModuleOp>();
  OwningOpRef<ModuleOp> module = ModuleOp::create(launch.getLoc());
  auto entry = cast<func::FuncOp>(reference->clone());
  entry.setName("entry");
  entry.setPublic();
  module->push_back(entry);
  if (failed(checkCallees(entry, program)))
    return failure();
  cloneCallees(entry, program, *module);
  setDynamicSharedBytes(*module, dynamicSharedBytes);
  return module;
}

/// The call of a registered function, whose arguments have types that the
/// launch's verifier and readArguments() know.
HostCall callOf(ir::LaunchOp launch) {
  HostCall call;
  call.name = cast<StringAttr>(launch->getAttr("source")).str();
  call.config =
      cast<StringAttr>(launch->getAttr(ir::LaunchOp::getRegisteredAttrName()))
          .str();
  if (auto library =
          launch->getAttrOfType<StringAttr>(ir::LaunchOp::getLibraryAttrName()))
    call.library = library.str();
  for (auto [k, arg] : llvm::enumerate(launch.getArgs())) {
    auto type = cast<MemRefType>(arg.getType());
    auto &list = launch.mayWrite(k) ? call.results : call.operands;
    list.push_back({*elementTypeOf(type.getElementType()),
                    {type.getShape().begin(), type.getShape().end()}});
  }
  return call;
}

} // namespace

FailureOr<KernelTable::Outlined>
KernelTable::outlineSource(ir::LaunchOp launch, Dim3 block,
                           int64_t dynamicSharedBytes, HostValueOf valueOf) {
  Outlined result;
  CudaFile file;
  FailureOr<func::FuncOp> reference = failure();
  if (failed(
          readArguments(launch, valueOf, result.arguments, file.parameters)) ||
      failed(reference = findReference(launch, valueOf)))
    return failure();
  std::vector<uintptr_t> signature{
      reinterpret_cast<uintptr_t>(launch.getOperation()), block.x, block.y,
      block.z, uintptr_t(dynamicSharedBytes)};
  auto [made, isNew] = bySource.try_emplace(std::move(signature));
  if (!isNew) {
    result.kernel = made->second;
    return result;
  }
  file.cubins = objectsOf(launch);
  FailureOr<StringRef> text = StringRef();
  if (file.cubins.empty() && !launch.isOpaque())
    text = readSource(launch, files, pathOf(launch));
  if (failed(text))
    return failure();
  file.file = cast<StringAttr>(launch->getAttr("source")).str();
  file.entry = launch.isOpaque()
                   ? file.file
                   : cast<StringAttr>(launch->getAttr("entry")).str();
  file.dynamicSharedBytes = uint32_t(dynamicSharedBytes);
  if (launch->hasAttr(ir::LaunchOp::getRegisteredAttrName()))
    file.call = callOf(launch);
  for (auto &[name, values] : launch.getTunables())
    file.tunables.push_back({name.str(), {values.begin(), values.end()}});
  Sha256 hash;
  hash.addField("mgpu CUDA file 1").addField(JsonFields::text(file));
  hash.addField(text->str());
  for (const auto &[arch, object] : file.cubins)
    hash.addField(arch).addField(object);
  if (*reference) {
    auto module = referenceModule(launch, *reference, dynamicSharedBytes);
    if (failed(module))
      return failure();
    hash.addField(KernelHasher(**module).hash(**module, block));
    if (makesTexts)
      file.reference = printKernel(**module);
  }
  for (uint32_t size : {block.x, block.y, block.z})
    hash.addField(std::to_string(size));
  KernelSpec spec;
  spec.hash = hash.hex();
  spec.block = block;
  spec.numArguments = uint32_t(result.arguments.size());
  result.kernel = made->second =
      intern(std::move(spec), launch, StringRef(file.entry), [&] {
        file.text = text->str();
        return std::move(file);
      });
  return result;
}

} // namespace mgpu::planner
