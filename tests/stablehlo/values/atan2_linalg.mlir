// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The same of a program over tensors that is not StableHLO.
// expected r0: 2xf32 = 3.1415927410125732 3.1415927410125732
func.func @main() -> tensor<2xf32> {
  %y = arith.constant dense<0.0> : tensor<2xf32>
  %x = arith.constant dense<-0.0> : tensor<2xf32>
  %r = math.atan2 %y, %x : tensor<2xf32>
  return %r : tensor<2xf32>
}
