// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls of cuDNN's attention and of cuBLAS's products, which XLA writes for
// GPUs, become the operations that they compute, and notes of where memory lies
// go. The operations are written as a text of StableHLO and put in the call's
// place. A call that asks for more (dropout, f8, gradients) stays one of which
// nothing is known.
#include "dialect/conversion/stablehlo/Expansion.h"
#include "dialect/stablehlo/StablehloDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

#include <cmath>

namespace mgpu::conversion {

using namespace mlir;
using namespace mgpu::stablehlo;

namespace {

using Dims = SmallVector<int64_t>;

std::string listOf(ArrayRef<int64_t> dims) {
  return "[" +
         llvm::join(llvm::map_range(
                        dims, [](int64_t dim) { return std::to_string(dim); }),
                    ", ") +
         "]";
}

/// A tensor of the text.
struct Tensor {
  std::string name;
  Dims shape;
  std::string element;
  std::string type() const {
    std::string text = "tensor<";
    for (int64_t size : shape)
      text += std::to_string(size) + "x";
    return text + element + ">";
  }
};

/// Operations of StableHLO, one after the other.
class Text {
public:
  Tensor op(const std::string &operation, ArrayRef<Tensor> operands,
            const std::string &attributes, Tensor result) {
    result.name = "%" + std::to_string(count++);
    lines += result.name + " = stablehlo." + operation + " ";
    lines += llvm::join(
        llvm::map_range(operands, [](const Tensor &x) { return x.name; }),
        ", ");
    lines += attributes + " : (";
    lines += llvm::join(
        llvm::map_range(operands, [](const Tensor &x) { return x.type(); }),
        ", ");
    lines += ") -> " + result.type() + "\n";
    return result;
  }
  Tensor binary(const char *operation, const Tensor &x, const Tensor &y) {
    return op(operation, {x, y}, "", x);
  }
  Tensor unary(const char *operation, const Tensor &x) {
    return op(operation, {x}, "", x);
  }
  Tensor splat(const std::string &value, Tensor like) {
    like.name = "%" + std::to_string(count++);
    lines += like.name + " = stablehlo.constant dense<" + value +
             "> : " + like.type() + "\n";
    return like;
  }
  Tensor splat(double value, const Tensor &like) {
    return splat(llvm::formatv("{0:E17}", value).str(), like);
  }
  Tensor as(const std::string &element, const Tensor &x) {
    return x.element == element
               ? x
               : op("convert", {x}, "", {"", x.shape, element});
  }
  Tensor spread(const Tensor &x, ArrayRef<int64_t> dims, Dims shape) {
    return op("broadcast_in_dim", {x}, ", dims = " + listOf(dims),
              {"", std::move(shape), x.element});
  }
  Tensor transposed(const Tensor &x, ArrayRef<int64_t> dims) {
    Dims shape =
        llvm::map_to_vector(dims, [&](int64_t dim) { return x.shape[dim]; });
    return op("transpose", {x}, ", dims = " + listOf(dims),
              {"", shape, x.element});
  }
  Tensor reshaped(const Tensor &x, Dims shape) {
    return op("reshape", {x}, "", {"", std::move(shape), x.element});
  }
  /// A product, of f32 where its factors are narrower.
  Tensor product(const Tensor &x, const Tensor &y, ArrayRef<int64_t> batchX,
                 ArrayRef<int64_t> batchY, ArrayRef<int64_t> sumX,
                 ArrayRef<int64_t> sumY) {
    Dims shape;
    for (int64_t dim : batchX)
      shape.push_back(x.shape[dim]);
    auto others = [&](const Tensor &of, ArrayRef<int64_t> batch,
                      ArrayRef<int64_t> sum) {
      for (size_t dim = 0; dim < of.shape.size(); ++dim)
        if (!llvm::is_contained(batch, dim) && !llvm::is_contained(sum, dim))
          shape.push_back(of.shape[dim]);
    };
    others(x, batchX, sumX);
    others(y, batchY, sumY);
    std::string how;
    if (!batchX.empty())
      how = ", batching_dims = " + listOf(batchX) + " x " + listOf(batchY);
    how += ", contracting_dims = " + listOf(sumX) + " x " + listOf(sumY);
    return op("dot_general", {x, y}, how,
              {"", shape, x.element == "f64" ? "f64" : "f32"});
  }
  /// Over the last dimension.
  Tensor reduced(const char *operation, const char *start, const Tensor &x) {
    Tensor init = splat(start, {"", {}, x.element});
    Tensor result{"%" + std::to_string(count++), x.shape, x.element};
    const size_t last = x.shape.size() - 1;
    result.shape.pop_back();
    lines += llvm::formatv("{0} = stablehlo.reduce({1} init: {2}) applies "
                           "stablehlo.{3} across dimensions = [{4}] : ({5}, "
                           "{6}) -> {7}\n",
                           result.name, x.name, init.name, operation, last,
                           x.type(), init.type(), result.type());
    return result;
  }
  Tensor compared(const char *direction, const Tensor &x, const Tensor &y) {
    return op("compare " + std::string(direction) + ",", {x, y}, "",
              {"", x.shape, "i1"});
  }
  Tensor selected(const Tensor &condition, const Tensor &x, const Tensor &y) {
    return op("select", {condition, x, y}, "", x);
  }
  Tensor iota(const Dims &shape, size_t dim) {
    Tensor result{"%" + std::to_string(count++), shape, "i32"};
    lines += llvm::formatv("{0} = stablehlo.iota dim = {1} : {2}\n",
                           result.name, dim, result.type());
    return result;
  }

  std::string lines;

private:
  unsigned count = 0;
};

/// The operand as the text has it; its name is "%argK".
std::optional<Tensor> tensorOf(Value value, size_t k) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !type.hasStaticShape())
    return std::nullopt;
  std::string element;
  llvm::raw_string_ostream(element) << type.getElementType();
  return Tensor{"%arg" + std::to_string(k), Dims(type.getShape()), element};
}

/// The object `name` of a call's configuration, which is JSON.
std::optional<llvm::json::Object> configOf(CustomCallOp op, StringRef name) {
  auto text =
      dyn_cast_or_null<StringAttr>(op.getBackendConfig().value_or(Attribute()));
  if (!text)
    return std::nullopt;
  // Its parser goes down a call for each bracket.
  constexpr size_t mostNested = 64;
  if (text.getValue().count('[') + text.getValue().count('{') > mostNested)
    return std::nullopt;
  llvm::Expected<llvm::json::Value> all = llvm::json::parse(text.getValue());
  if (!all) {
    llvm::consumeError(all.takeError());
    return std::nullopt;
  }
  const llvm::json::Object *object = all->getAsObject();
  const llvm::json::Object *part = object ? object->getObject(name) : nullptr;
  return part ? std::optional(*part) : std::nullopt;
}

/// A list of dimensions, which are numbers or texts of numbers; none where one
/// is no dimension of `rank`.
std::optional<Dims> dimsOf(const llvm::json::Object *numbers, StringRef name,
                           size_t rank) {
  Dims dims;
  const llvm::json::Array *list = numbers ? numbers->getArray(name) : nullptr;
  if (!list)
    return dims;
  for (const llvm::json::Value &each : *list) {
    int64_t dim = -1;
    if (auto number = each.getAsInteger())
      dim = *number;
    else if (auto text = each.getAsString();
             !text || text->getAsInteger(10, dim))
      return std::nullopt;
    if (dim < 0 || size_t(dim) >= rank || llvm::is_contained(dims, dim))
      return std::nullopt;
    dims.push_back(dim);
  }
  return dims;
}

double numberOf(const llvm::json::Object &config, StringRef name,
                double otherwise) {
  return config.getNumber(name).value_or(otherwise);
}

using Results = FailureOr<SmallVector<Value>>;

/// Puts the operations of the text in the call's place. `given` are the call's
/// first results; others, which are a library's memory, are zeros.
Results put(ImplicitLocOpBuilder &b, CustomCallOp op, Text &text,
            ArrayRef<Tensor> given) {
  SmallVector<Tensor> results(given);
  for (size_t k = given.size(); k < op.getNumResults(); ++k) {
    auto type = tensorOf(op.getResult(unsigned(k)), k);
    if (!type || (type->element != "ui8" && type->element != "i8"))
      return SmallVector<Value>();
    results.push_back(text.splat("0", *type));
  }
  std::string arguments, types, names;
  for (auto [k, operand] : llvm::enumerate(op.getInputs()))
    arguments += (k ? ", " : "") + tensorOf(operand, k)->name + ": " +
                 tensorOf(operand, k)->type();
  for (const Tensor &each : results) {
    types += (types.empty() ? "" : ", ") + each.type();
    names += (names.empty() ? "" : ", ") + each.name;
  }
  const std::string all = "func.func @call(" + arguments + ") -> (" + types +
                          ") {\n" + text.lines + "return " + names + " : " +
                          types + "\n}\n";
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(all, b.getContext());
  if (!module)
    return op.emitOpError("is not written as operations");
  auto function = module->lookupSymbol<func::FuncOp>("call");
  if (function.getResultTypes() != op.getResultTypes())
    return SmallVector<Value>(); // the call's shapes are none of this
  IRMapping map;
  map.map(function.getArguments(), op.getInputs());
  for (Operation &each : function.getBody().front().without_terminator())
    b.clone(each, map)->setLoc(op.getLoc());
  return llvm::map_to_vector(
      function.getBody().front().getTerminator()->getOperands(),
      [&](Value value) { return map.lookup(value); });
}

/// The operands of a call, where all of them are tensors of known shapes.
std::optional<SmallVector<Tensor>> operandsOf(CustomCallOp op) {
  SmallVector<Tensor> tensors;
  for (auto [k, operand] : llvm::enumerate(op.getInputs())) {
    auto tensor = tensorOf(operand, k);
    if (!tensor)
      return std::nullopt;
    tensors.push_back(*tensor);
  }
  return tensors;
}

bool isFloat(const Tensor &x) {
  return x.element == "f32" || x.element == "f16" || x.element == "bf16";
}

/// A call of cuDNN's attention, as JAX writes it
/// (jax.nn.dot_product_attention): operands are Q, K, V, a bias and lengths;
/// results are the attention, in training the logarithm of each query's sum of
/// powers, and memory.
class Attention {
public:
  explicit Attention(CustomCallOp op) : op(op) {}
  Results expand(ImplicitLocOpBuilder &b);

private:
  bool read();
  bool readOperands(const llvm::json::Object &config, bool hasBias);
  /// By number of the batch and of the head, row and element.
  Tensor ordered(const Tensor &x, ArrayRef<int64_t> batch, int64_t row);
  Tensor headsOfQueries(const Tensor &x);
  Tensor masked(Tensor scores);
  Tensor isBelow(const Tensor &scores, size_t dim, const Tensor &lengths);

  CustomCallOp op;
  Text text;
  Tensor q, k, v;
  std::optional<Tensor> bias, queryLengths, keyLengths;
  double scale = 1;
  bool isCausal = false;
};

Tensor Attention::ordered(const Tensor &x, ArrayRef<int64_t> batch,
                          int64_t row) {
  const int64_t all = 0 + 1 + 2 + 3;
  return text.transposed(
      x, {batch[0], batch[1], row, all - batch[0] - batch[1] - row});
}

bool Attention::readOperands(const llvm::json::Object &config, bool hasBias) {
  const auto operands = operandsOf(op);
  const StringRef mask = config.getString("mask_type").value_or("NO_MASK");
  const bool isPadded = mask.starts_with("PADDING");
  isCausal = mask.ends_with("CAUSAL");
  if (mask != "NO_MASK" && mask != "CAUSAL" && mask != "PADDING" &&
      mask != "PADDING_CAUSAL")
    return false;
  if (!operands || operands->size() != 3u + hasBias + 2 * isPadded)
    return false;
  const llvm::json::Object *first =
                               config.getObject("bmm1_dot_dimension_numbers"),
                           *second =
                               config.getObject("bmm2_dot_dimension_numbers");
  for (const Tensor &each : ArrayRef(*operands).take_front(3))
    if (each.shape.size() != 4 || !isFloat(each))
      return false;
  auto batchQ = dimsOf(first, "lhs_batch_dimensions", 4),
       batchK = dimsOf(first, "rhs_batch_dimensions", 4),
       batchV = dimsOf(second, "rhs_batch_dimensions", 4),
       sumQ = dimsOf(first, "lhs_contracting_dimensions", 4),
       sumK = dimsOf(first, "rhs_contracting_dimensions", 4),
       sumV = dimsOf(second, "rhs_contracting_dimensions", 4);
  for (const auto *each : {&batchQ, &batchK, &batchV})
    if (!*each || (*each)->size() != 2)
      return false;
  for (const auto *each : {&sumQ, &sumK, &sumV})
    if (!*each || (*each)->size() != 1)
      return false;
  for (auto [batch, sum] :
       {std::pair(&batchQ, &sumQ), {&batchK, &sumK}, {&batchV, &sumV}})
    if (llvm::is_contained(**batch, (**sum)[0]))
      return false;
  auto rest = [](ArrayRef<int64_t> batch, int64_t sum) {
    return 0 + 1 + 2 + 3 - batch[0] - batch[1] - sum;
  };
  q = ordered((*operands)[0], *batchQ, rest(*batchQ, (*sumQ)[0]));
  k = ordered((*operands)[1], *batchK, rest(*batchK, (*sumK)[0]));
  v = ordered((*operands)[2], *batchV, (*sumV)[0]);
  if (hasBias)
    bias = (*operands)[3];
  if (isPadded) {
    queryLengths = (*operands)[3u + hasBias];
    keyLengths = (*operands)[4u + hasBias];
  }
  return true;
}

/// False where the call asks for more than is known here.
bool Attention::read() {
  const StringRef name = op.getCallTargetName();
  const bool hasBias = name == "__cudnn$fmhaScaleBiasSoftmax";
  const auto config = configOf(op, "cudnn_fmha_backend_config");
  const std::optional<ArrayAttr> called = op.getCalledComputations();
  if ((!hasBias && name != "__cudnn$fmhaSoftmax") || !config ||
      numberOf(*config, "dropout_rate", 0) != 0 ||
      numberOf(*config, "sliding_window_length", 0) > 0 ||
      (called && !called->empty()) || !readOperands(*config, hasBias))
    return false;
  scale = numberOf(*config, "fmha_scale", 1);
  const bool fits = std::isfinite(scale) && q.shape[0] == k.shape[0] &&
                    q.shape[0] == v.shape[0] && k.shape[1] == v.shape[1] &&
                    k.shape[2] == v.shape[2] && q.shape[3] == k.shape[3] &&
                    q.element == k.element && k.shape[1] > 0 &&
                    q.shape[1] % k.shape[1] == 0;
  if (!fits)
    return false;
  if (bias) {
    const Dims scores{q.shape[0], q.shape[1], q.shape[2], k.shape[2]};
    if (!isFloat(*bias) || bias->shape.size() != scores.size())
      return false;
    for (auto [own, size] : llvm::zip_equal(bias->shape, scores))
      if (own != 1 && own != size)
        return false;
  }
  for (const auto &lengths : {queryLengths, keyLengths})
    if (lengths &&
        (lengths->element != "i32" || lengths->shape != Dims{q.shape[0]}))
      return false;
  return true;
}

/// Query heads share a key head in groups that lie together.
Tensor Attention::headsOfQueries(const Tensor &x) {
  if (x.shape[1] == q.shape[1])
    return x;
  Dims shape = x.shape;
  shape.insert(shape.begin() + 2, q.shape[1] / x.shape[1]);
  Tensor grouped = text.spread(x, {0, 1, 3, 4}, shape);
  return text.reshaped(grouped,
                       {q.shape[0], q.shape[1], x.shape[2], x.shape[3]});
}

/// Whether an element's place along `dim` is below its batch's length.
Tensor Attention::isBelow(const Tensor &like, size_t dim,
                          const Tensor &lengths) {
  Tensor place = text.iota(like.shape, dim),
         length = text.spread(lengths, {0}, like.shape);
  return text.compared("LT", place, length);
}

Tensor Attention::masked(Tensor scores) {
  Tensor lowest = text.splat("0xFF800000", scores);
  if (isCausal) {
    Tensor query = text.iota(scores.shape, 2), key = text.iota(scores.shape, 3);
    scores = text.selected(text.compared("GE", query, key), scores, lowest);
  }
  if (keyLengths)
    scores = text.selected(isBelow(scores, 3, *keyLengths), scores, lowest);
  return scores;
}

Results Attention::expand(ImplicitLocOpBuilder &b) {
  auto result =
      op.getNumResults() > 0 ? tensorOf(op.getResult(0), 0) : std::nullopt;
  if (!result || !read())
    return SmallVector<Value>();
  Tensor keys = headsOfQueries(k), values = headsOfQueries(v);
  Tensor scores = text.product(q, keys, {0, 1}, {0, 1}, {3}, {3});
  if (scale != 1)
    scores = text.binary("multiply", scores, text.splat(scale, scores));
  if (bias)
    scores = text.binary(
        "add", scores,
        text.spread(text.as("f32", *bias), {0, 1, 2, 3}, scores.shape));
  scores = masked(scores);
  Tensor most = text.reduced("maximum", "0xFF800000", scores);
  Tensor power = text.unary(
      "exponential", text.binary("subtract", scores,
                                 text.spread(most, {0, 1, 2}, scores.shape)));
  Tensor total = text.reduced("add", "0.0", power);
  Tensor weights =
      text.binary("divide", power, text.spread(total, {0, 1, 2}, scores.shape));
  Tensor made =
      text.as(result->element, text.product(text.as(v.element, weights), values,
                                            {0, 1}, {0, 1}, {3}, {2}));
  // Queries behind the last one give 0, and those that have no key.
  if (queryLengths)
    made = text.selected(isBelow(made, 2, *queryLengths), made,
                         text.splat("0.0", made));
  if (keyLengths) {
    Tensor lengths = text.spread(*keyLengths, {0}, made.shape);
    made = text.selected(
        text.compared("GT", lengths, text.splat("0", {"", made.shape, "i32"})),
        made, text.splat("0.0", made));
  }
  SmallVector<Tensor> results{made};
  auto second =
      op.getNumResults() > 2 ? tensorOf(op.getResult(1), 1) : std::nullopt;
  if (second && second->element == "f32")
    results.push_back(text.binary("add", most, text.unary("log", total)));
  return put(b, op, text, results);
}

/// cuBLASLt's GELU, by tanh.
Tensor gelu(Text &text, const Tensor &x) {
  Tensor cube = text.binary("multiply", x, text.binary("multiply", x, x));
  Tensor inner = text.binary(
      "multiply", text.splat(0.7978845608028654, x),
      text.binary("add", x,
                  text.binary("multiply", text.splat(0.044715, x), cube)));
  Tensor one = text.splat(1, x);
  return text.binary("multiply", text.binary("multiply", text.splat(0.5, x), x),
                     text.binary("add", one, text.unary("tanh", inner)));
}

/// alpha A B + beta C, with a bias along the last dimension and a function
/// behind it.
Results expandProduct(ImplicitLocOpBuilder &b, CustomCallOp op) {
  const auto config = configOf(op, "gemm_backend_config");
  auto operands = operandsOf(op);
  const auto result =
      op.getNumResults() > 0 ? tensorOf(op.getResult(0), 0) : std::nullopt;
  if (!config || !operands || operands->size() < 2 || !result ||
      numberOf(*config, "alpha_imag", 0) != 0)
    return SmallVector<Value>();
  const double alpha = numberOf(*config, "alpha_real", 1),
               beta = numberOf(*config, "beta", 0);
  if (!std::isfinite(alpha) || !std::isfinite(beta))
    return SmallVector<Value>();
  StringRef epilogue = config->getString("epilogue").value_or("DEFAULT");
  const bool hasBias = epilogue.consume_front("BIAS");
  epilogue.consume_front("_");
  const bool isPlain = epilogue.empty() || epilogue == "DEFAULT";
  if ((!isPlain && epilogue != "RELU" && epilogue != "GELU") ||
      operands->size() != 2u + (beta != 0) + hasBias)
    return SmallVector<Value>();
  for (const Tensor &each : *operands)
    if (!isFloat(each) && each.element != "f64")
      return SmallVector<Value>();
  const Tensor &x = (*operands)[0], &y = (*operands)[1];
  const llvm::json::Object *numbers =
      config->getObject("dot_dimension_numbers");
  auto batchX = dimsOf(numbers, "lhs_batch_dimensions", x.shape.size()),
       batchY = dimsOf(numbers, "rhs_batch_dimensions", y.shape.size()),
       sumX = dimsOf(numbers, "lhs_contracting_dimensions", x.shape.size()),
       sumY = dimsOf(numbers, "rhs_contracting_dimensions", y.shape.size());
  if (!batchX || !batchY || !sumX || !sumY || sumX->empty() ||
      batchX->size() != batchY->size() || sumX->size() != sumY->size())
    return SmallVector<Value>();
  for (auto [batch, sum] : {std::pair(&batchX, &sumX), {&batchY, &sumY}})
    for (int64_t dim : **sum)
      if (llvm::is_contained(**batch, dim))
        return SmallVector<Value>();
  for (auto [one, other] : {std::pair(&batchX, &batchY), {&sumX, &sumY}})
    for (auto [i, j] : llvm::zip_equal(**one, **other))
      if (x.shape[size_t(i)] != y.shape[size_t(j)])
        return SmallVector<Value>();
  Text text;
  Tensor made = text.product(x, y, *batchX, *batchY, *sumX, *sumY);
  if (alpha != 1)
    made = text.binary("multiply", made, text.splat(alpha, made));
  if (beta != 0) {
    Tensor c = text.as(made.element, (*operands)[2]);
    if (c.shape != made.shape)
      return SmallVector<Value>();
    made = text.binary("add", made,
                       text.binary("multiply", c, text.splat(beta, made)));
  }
  if (hasBias) {
    Tensor bias = text.as(made.element, operands->back());
    if (made.shape.empty() || bias.shape != Dims{made.shape.back()})
      return SmallVector<Value>();
    made = text.binary(
        "add", made,
        text.spread(bias, {int64_t(made.shape.size()) - 1}, made.shape));
  }
  if (epilogue == "RELU")
    made = text.binary("maximum", made, text.splat("0.0", made));
  if (epilogue == "GELU")
    made = gelu(text, made);
  return put(b, op, text, {text.as(result->element, made)});
}

Results expandCall(ImplicitLocOpBuilder &b, CustomCallOp op) {
  const StringRef name = op.getCallTargetName();
  if (name.starts_with("__cudnn$fmha"))
    return Attention(op).expand(b);
  if (name == "__cublas$gemm" || name == "__cublas$lt$matmul")
    return expandProduct(b, op);
  // Whether memory lies with the host, and how results do, is the plan's
  // affair.
  if ((name == "annotate_device_placement" ||
       name == "xla.sdy.FuncResultSharding") &&
      op.getInputs().size() == 1 && op.getNumResults() == 1 &&
      op.getInputs()[0].getType() == op.getResult(0).getType())
    return SmallVector<Value>{
        ReshapeOp::create(b, TypeRange{op.getResult(0).getType()},
                          ValueRange{op.getInputs()[0]})
            .getResult()};
  return SmallVector<Value>();
}

} // namespace

ArrayRef<NamedExpansion> libraryExpansions() {
  static const NamedExpansion all[] = {expansion<CustomCallOp, expandCall>()};
  return all;
}

} // namespace mgpu::conversion
