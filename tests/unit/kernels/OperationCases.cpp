// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KernelCases.h"
#include "KernelRunner.h"

namespace mgpu::kernels {

namespace {

/// One store per operation of `type` on a(i), b(i): row r of %o is operation r.
KernelCase corpus(const std::string &name, const std::string &type, char code,
                  const std::vector<std::string> &operations,
                  const std::string &before = "") {
  std::string rows = std::to_string(operations.size());
  std::string memref = "memref<96x" + type + ">",
              out = "memref<" + rows + "x96x" + type + ">";
  std::string body = "%i = gpu.global_id x\n"
                     "%a = memref.load %x[%i] : " +
                     memref +
                     "\n"
                     "%b = memref.load %y[%i] : " +
                     memref + "\n" + before;
  for (size_t r = 0; r < operations.size(); ++r) {
    std::string n = std::to_string(r);
    std::string operation = operations[r];
    for (size_t at; (at = operation.find("$r")) != std::string::npos;)
      operation.replace(at, 2, "%r" + n);
    for (size_t at; (at = operation.find("$t")) != std::string::npos;)
      operation.replace(at, 2, "%t" + n);
    body += operation + "\n%row" + n + " = arith.constant " + n +
            " : index\nmemref.store %r" + n + ", %o[%row" + n +
            ", %i] : " + out + "\n";
  }
  return {name,
          module("%x: " + memref + ", %y: " + memref + ", %o: " + out, body),
          {32},
          {3},
          {{code, 96}, {code, 96}, {code, 96 * operations.size()}},
          {}};
}

KernelCase integers(const std::string &type, char code) {
  std::vector<std::string> operations;
  for (const char *op : {"addi", "subi", "muli", "andi", "ori", "xori", "maxsi",
                         "minsi", "maxui", "minui"})
    operations.push_back(std::string("$r = arith.") + op + " %a, %b : " + type);
  for (const char *op : {"divsi", "divui", "remsi", "remui", "floordivsi",
                         "ceildivsi", "ceildivui"})
    operations.push_back(std::string("$r = arith.") + op + " %a, %d : " + type);
  for (const char *op : {"shli", "shrsi", "shrui"})
    operations.push_back(std::string("$r = arith.") + op + " %a, %s : " + type);
  for (const char *p :
       {"eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"})
    operations.push_back(std::string("$t = arith.cmpi ") + p + ", %a, %b : " +
                         type + "\n$r = arith.select $t, %a, %b : " + type);
  operations.push_back("$t = arith.trunci %a : " + type +
                       " to i1\n$r = arith.extsi $t : i1 to " + type);
  operations.push_back("$t = arith.cmpi slt, %a, %b : " + type +
                       "\n$r = arith.extui $t : i1 to " + type);
  operations.push_back("$t = arith.index_cast %a : " + type +
                       " to index\n$r = arith.index_cast $t : index to " +
                       type);
  operations.push_back("$t = arith.index_castui %a : " + type +
                       " to index\n$r = arith.index_castui $t : index to " +
                       type);
  for (const char *op : {"absi", "ctlz", "cttz", "ctpop"})
    operations.push_back(std::string("$r = math.") + op + " %a : " + type);
  operations.push_back("$t:2 = arith.addui_extended %a, %b : " + type +
                       ", i1\n$r = arith.select $t#1, $t#0, %b : " + type);
  for (const char *op : {"mulsi_extended", "mului_extended"})
    operations.push_back(std::string("$t:2 = arith.") + op + " %a, %b : " +
                         type + "\n$r = arith.subi $t#0, $t#1 : " + type);
  return corpus(type + "_ops", type, code, operations,
                // A divisor that is neither 0 nor -1, a shift below the width.
                "%c3 = arith.constant 3 : " + type +
                    "\n%c5 = arith.constant 5 : " + type +
                    "\n%m = arith.andi %b, %c3 : " + type +
                    "\n%s = arith.addi %m, %c3 : " + type +
                    "\n%n = arith.constant -7 : " + type +
                    "\n%neg = arith.cmpi slt, %b, %c3 : " + type +
                    "\n%d = arith.select %neg, %n, %s : " + type + "\n");
}

KernelCase floats(const std::string &type, char code) {
  std::vector<std::string> operations;
  for (const char *op :
       {"addf", "subf", "mulf", "divf", "maximumf", "minimumf"})
    operations.push_back(std::string("$r = arith.") + op + " %a, %b : " + type);
  operations.push_back("$r = arith.negf %a : " + type);
  for (const char *p : {"oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq",
                        "ugt", "uge", "ult", "ule", "une", "uno"})
    operations.push_back(std::string("$t = arith.cmpf ") + p + ", %a, %b : " +
                         type + "\n$r = arith.select $t, %a, %b : " + type);
  operations.push_back("$t = arith.fptosi %a : " + type +
                       " to i32\n$r = arith.sitofp $t : i32 to " + type);
  if (type == "f32" || type == "f64") {
    for (const char *op : {"sqrt", "absf", "ceil", "floor", "trunc",
                           "roundeven", "exp", "sin", "tanh"})
      operations.push_back(std::string("$r = math.") + op + " %a : " + type);
    operations.push_back("$r = math.fma %a, %b, %a : " + type);
    operations.push_back("$r = math.copysign %a, %b : " + type);
    operations.push_back("$r = arith.remf %a, %b : " + type);
  }
  return corpus(type + "_ops", type, code, operations);
}

} // namespace

std::vector<KernelCase> operationCases() {
  return {integers("i8", 'c'),  integers("i16", 's'), integers("i32", 'i'),
          integers("i64", 'l'), floats("f32", 'f'),   floats("f64", 'd'),
          floats("bf16", 'h')};
}

} // namespace mgpu::kernels
