// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// 2^24 calls, counted before they are made.
// exit 5: more than the 4000000 that a program may have; raise --node-limit
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @f0(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @f0(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @f1(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @f1(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f1(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @f2(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @f2(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f2(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @f3(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @f3(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f3(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @f4(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @f4(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f4(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @f5(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @f5(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f5(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @f6(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @f6(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f6(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @f7(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @f7(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f7(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @f8(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @f8(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f8(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @f9(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @f9(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f9(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @f10(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @f10(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f10(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @f11(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @f11(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f11(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @f12(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @f12(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f12(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @f13(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @f13(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f13(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @f14(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @f14(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f14(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @f15(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @f15(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f15(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @f16(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @f16(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f16(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @f17(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @f17(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f17(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @f18(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @f18(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f18(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @f19(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @f19(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f19(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @f20(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @f20(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f20(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @f21(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @f21(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f21(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @f22(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @f22(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f22(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @f23(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @f23(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f23(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @f24(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @f24(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f24(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.negate %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}
