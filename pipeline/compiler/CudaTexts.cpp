// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/compiler/MlirCompiler.h"

#include "kernels/compile/CudaConfig.h"
#include "kernels/compile/CudaText.h"
#include "kernels/compile/KernelCache.h"
#include "kernels/compile/KernelRecipe.h"
#include "kernels/cuda/CudaEmitter.h"
#include "kernels/cuda/ProductForms.h"
#include "kernels/lower/KernelDialects.h"
#include "pipeline/compiler/KernelBuild.h"
#include "pipeline/compiler/SpaceOf.h"
#include "planner/dag/LaunchFacts.h"
#include "planner/import/SourceNames.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"

#include <fmt/format.h>

namespace mgpu::pipeline {

using namespace mlir;

static kernels::CudaText textOf(kernels::CudaKernel kernel,
                                kernels::KernelSpace space) {
  kernels::CudaText text;
  text.name = kernel.name;
  text.image = std::move(kernel.image);
  kernels::setLaunch(text.image, space, space.defaults);
  text.reason = kernel.reason;
  text.reshapable = kernel.reshapable;
  text.space = std::move(space);
  return text;
}

namespace {

/// How the text of a form of matrix products of f16 and bf16 is made.
struct ProductForm {
  Variant variant;
  const char *form;
  std::string (*refusal)(ModuleOp);
  Result<kernels::CudaKernel> (*emit)(ModuleOp,
                                      const kernels::CudaEmitOptions &);
  kernels::KernelSpace (*space)(ModuleOp, Dim3, Dim3);
};
constexpr ProductForm productForms[] = {
    {Variant::Mma, "tensor_cores", kernels::tensorMatmulRefusal,
     kernels::emitTensorMatmul, kernels::tensorMatmulSpace},
    {Variant::Wgmma, "wgmma", kernels::wgmmaMatmulRefusal,
     kernels::emitWgmmaMatmul, kernels::wgmmaMatmulSpace},
};

} // namespace

/// The forms of a matrix product of f16 or bf16, each with why it is not used;
/// one without a source cannot be. None of another kernel.
static std::vector<kernels::CudaText>
productTexts(ModuleOp module, const kernels::CudaEmitOptions &given,
             const Variants &variants) {
  std::vector<kernels::CudaText> texts;
  for (const ProductForm &form : productForms) {
    std::string refusal = form.refusal(module);
    if (refusal == "-")
      continue;
    kernels::CudaEmitOptions options = given;
    options.name += std::string("_") + form.form;
    kernels::CudaText text;
    text.image.sourceBlock = options.block;
    if (refusal.empty()) {
      if (auto kernel = form.emit(module, options))
        text = textOf(std::move(*kernel),
                      form.space(module, options.block, options.maxGrid));
      else
        refusal = "what is around the product cannot be emitted";
    }
    text.name = options.name;
    text.form = form.form;
    const VariantFacts &facts = factsOf(form.variant);
    text.leastArch = facts.leastArch;
    text.image.arch = facts.onlyArch;
    text.disabled =
        !refusal.empty()              ? refusal
        : variants.uses(form.variant) ? "is on, as is the form that is used"
        : variants.isOff(form.variant)
            ? "off, as was asked for"
            : fmt::format(
                  "off until its test on a GPU (tests/gpu) has passed there; "
                  "--variant {} uses it",
                  facts.name);
    texts.push_back(std::move(text));
  }
  return texts;
}

/// The text of an attention on tensor cores, which is its default; none where
/// it has no such text or does without by --variant mma=off.
static std::optional<kernels::CudaText>
tensorAttention(ModuleOp module, const kernels::CudaEmitOptions &given,
                const Variants &variants) {
  if (variants.isOff(Variant::Mma) ||
      !kernels::tensorAttentionRefusal(module).empty())
    return std::nullopt;
  kernels::CudaEmitOptions options = given;
  options.name += "_tensor_cores";
  auto kernel = kernels::emitTensorAttention(module, options);
  if (!kernel)
    return std::nullopt;
  kernels::CudaText text = textOf(
      std::move(*kernel),
      kernels::tensorAttentionSpace(module, options.block, options.maxGrid));
  text.form = "tensor_cores";
  text.leastArch = factsOf(Variant::Mma).leastArch;
  return text;
}

namespace {

/// The product of a kernel that cuBLASLt can compute, or why it cannot.
struct LibraryProduct {
  std::string refusal; ///< "-" of what is no product
  std::optional<kernels::MatrixProduct> product;
};

} // namespace

/// The kernel is one that no text was made of yet, as that changes it.
static LibraryProduct libraryProductOf(ModuleOp module) {
  LibraryProduct library{kernels::libraryMatmulRefusal(module), std::nullopt};
  if (library.refusal.empty())
    library.product = kernels::libraryMatmul(module);
  return library;
}

/// cuBLASLt as a candidate for a matrix product, whose text `text` is: the
/// default of f16 and bf16 unless `text` is a form on tensor cores.
static void addLibrary(const LibraryProduct &library, const Variants &variants,
                       kernels::CudaText &text, bool usesForm) {
  const auto &[refusal, product] = library;
  if (refusal == "-")
    return;
  kernels::CudaText candidate;
  candidate.name = text.name + "_cublaslt";
  candidate.form = "cublaslt";
  candidate.image.sourceBlock = text.image.sourceBlock;
  candidate.disabled = refusal;
  if (product) {
    const bool isNarrow = sizeBytes(product->factors) == 2;
    candidate.image.product = product;
    candidate.disabled =
        isNarrow ? "another form was asked for" : "--variant cublaslt uses it";
    if (!usesForm && (variants.isAsked(Variant::CublasLt) ||
                      (isNarrow && variants.uses(Variant::CublasLt)))) {
      text.image.product = product;
      kernels::addLibraryChoices(*text.space);
    }
  }
  text.candidates.push_back(std::move(candidate));
}

/// The form to use, taken out of `candidates`, if it is there.
static std::optional<kernels::CudaText>
takeForm(std::vector<kernels::CudaText> &candidates, const Variants &variants) {
  for (Variant variant : variants.productForms()) {
    const ProductForm &form =
        *std::ranges::find(productForms, variant, &ProductForm::variant);
    auto at = std::ranges::find_if(candidates, [&](const auto &candidate) {
      return candidate.form == form.form && !candidate.image.blob.empty();
    });
    if (at == candidates.end())
      continue;
    kernels::CudaText text = std::move(*at);
    candidates.erase(at);
    text.disabled.clear();
    return text;
  }
  return std::nullopt;
}

namespace {

DialectRegistry kernelDialects() {
  DialectRegistry registry;
  kernels::registerHostEmitDialects(registry);
  return registry;
}

/// Emits kernels, all in one context: making one takes as long as emitting six
/// small kernels.
class TextEmitter {
public:
  explicit TextEmitter(const Variants &variants) : variants(variants) {
    context.printOpOnDiagnostic(false);
  }
  Result<kernels::CudaText> emit(const planner::KernelSpec &spec,
                                 const planner::LaunchFacts &facts);

private:
  Variants variants;
  planner::SourceNames names;
  MLIRContext context{kernelDialects(), MLIRContext::Threading::DISABLED};
};

/// "a.py:3 + b.py:5" for "/x/a.py:3 + /y/b.py:5": equal programs have equal
/// texts, wherever they lie. A file's name may hold anything; here no lines.
std::string placeForComment(const std::string &location) {
  std::string text;
  for (StringRef rest = location; !rest.empty();) {
    auto [place, after] = rest.split(" + ");
    text +=
        (text.empty() ? "" : " + ") + place.substr(place.rfind('/') + 1).str();
    rest = after;
  }
  for (char &c : text)
    if (llvm::isSpace(c))
      c = ' ';
  return text;
}

Result<kernels::CudaText> TextEmitter::emit(const planner::KernelSpec &spec,
                                            const planner::LaunchFacts &facts) {
  const Dim3 grid = facts.maxGrid;
  const std::string name = kernels::entryNameOf(spec.name);
  if (const planner::CudaFile *file = spec.cudaFile();
      file && !file->isOpaque() && !file->call)
    return kernels::fileText(*file, name, spec.block, grid);
  MGPU_TRY_ASSIGN(const std::string *source, spec.hostText());
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(*source, ParserConfig(&context));
  if (!module)
    return fail(
        ErrorKind::Internal,
        fmt::format("kernel {} does not parse after outlining", spec.name));
  names.nameValues(*module);
  auto space =
      kernels::spaceOf(*module, spec.block, grid, kernels::KernelTarget::Cuda);
  if (!space)
    return kernels::failOf(spec, space.error());
  kernels::CudaEmitOptions options{name,
                                   placeForComment(spec.location),
                                   spec.block,
                                   grid,
                                   facts.alignment,
                                   facts.unwritten,
                                   facts.steadyBytes};
  if (auto attention = tensorAttention(*module, options, variants))
    return std::move(*attention);
  const LibraryProduct library = libraryProductOf(*module);
  const std::optional<kernels::SparseProduct> sparse =
      kernels::librarySparse(*module);
  std::vector<kernels::CudaText> candidates =
      productTexts(*module, options, variants);
  if (auto form = takeForm(candidates, variants)) {
    form->candidates = std::move(candidates);
    addLibrary(library, variants, *form, true);
    return std::move(*form);
  }
  const bool isTiled =
      kernels::isMatmul(*module) || kernels::isAttention(*module);
  auto kernel = kernels::emitCudaKernel(*module, options);
  if (!kernel)
    return kernels::failOf(spec, kernel.error());
  kernels::CudaText text = textOf(std::move(*kernel), std::move(*space));
  text.form = isTiled ? "tiles" : "threads";
  text.candidates = std::move(candidates);
  addLibrary(library, variants, text, false);
  if (variants.uses(Variant::Cusparse))
    text.image.sparse = sparse;
  return text;
}

} // namespace

std::vector<Result<kernels::CudaText>>
MlirCompiler::emitCudaKernels(const planner::Dag &dag, const Variants &variants,
                              device::BlobCache *cache) const {
  // Most entries of a program that changes a little stay.
  constexpr size_t inEntry = 32;
  const std::vector<planner::LaunchFacts> facts = planner::launchFacts(dag);
  std::vector<Result<kernels::CudaText>> texts;
  kernels::TextCache kept(cache, {kernels::emitterId(), variants.textKey()});
  std::optional<TextEmitter> emitter;
  for (size_t first = 0; first < dag.kernels.size(); first += inEntry) {
    size_t count = std::min(inEntry, dag.kernels.size() - first);
    std::span specs = std::span(dag.kernels).subspan(first, count);
    std::span of = std::span(facts).subspan(first, count);
    std::string key = kept.keyOf(specs, of);
    if (auto found = kept.find(key, specs)) {
      std::move(found->begin(), found->end(), std::back_inserter(texts));
      continue;
    }
    if (!emitter)
      emitter.emplace(variants);
    for (size_t k = 0; k < count; ++k)
      texts.push_back(emitter->emit(specs[k], of[k]));
    if (auto all =
            allOf(std::vector(texts.end() - ptrdiff_t(count), texts.end())))
      kept.store(key, specs, of, *all);
  }
  return texts;
}

} // namespace mgpu::pipeline
