// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One attention block over two sequences of 48 tokens, written in linalg on
// device buffers: projections, scores, softmax, a residual and a layer norm.
// Each operation becomes a launch.

mgpu.device_config @config #mgpu.device_config<numDevices = 1>

#rows = affine_map<(b, t, d) -> (b, t)>
#all = affine_map<(b, t, d) -> (b, t, d)>

func.func @main(%x: memref<2x48x32xf32>, %wq: memref<32x32xf32>, %wk: memref<32x32xf32>, %wv: memref<32x32xf32>, %y: memref<2x48x32xf32>) {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c48 = arith.constant 48 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  %scale = arith.constant 0.176776695 : f32 // 1 / sqrt(32)
  %width = arith.constant 32.0 : f32
  %epsilon = arith.constant 1.0e-5 : f32
  %host = mgpu.get_device %cm1 : !mgpu.device
  %dev = mgpu.get_device %c0 : !mgpu.device

  %dx = mgpu.alloc %dev : !mgpu.device -> memref<2x48x32xf32>
  %dwq = mgpu.alloc %dev : !mgpu.device -> memref<32x32xf32>
  %dwk = mgpu.alloc %dev : !mgpu.device -> memref<32x32xf32>
  %dwv = mgpu.alloc %dev : !mgpu.device -> memref<32x32xf32>
  mgpu.memcpy %dx, %x, %dev, %host : memref<2x48x32xf32>, memref<2x48x32xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %dwq, %wq, %dev, %host : memref<32x32xf32>, memref<32x32xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %dwk, %wk, %dev, %host : memref<32x32xf32>, memref<32x32xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %dwv, %wv, %dev, %host : memref<32x32xf32>, memref<32x32xf32>, !mgpu.device, !mgpu.device

  // The projections see the two sequences as one of 96 tokens.
  %q = mgpu.alloc %dev : !mgpu.device -> memref<2x48x32xf32>
  %k = mgpu.alloc %dev : !mgpu.device -> memref<2x48x32xf32>
  %v = mgpu.alloc %dev : !mgpu.device -> memref<2x48x32xf32>
  %tokens = memref.collapse_shape %dx [[0, 1], [2]] : memref<2x48x32xf32> into memref<96x32xf32>
  %qTokens = memref.collapse_shape %q [[0, 1], [2]] : memref<2x48x32xf32> into memref<96x32xf32>
  %kTokens = memref.collapse_shape %k [[0, 1], [2]] : memref<2x48x32xf32> into memref<96x32xf32>
  %vTokens = memref.collapse_shape %v [[0, 1], [2]] : memref<2x48x32xf32> into memref<96x32xf32>
  linalg.fill ins(%zero : f32) outs(%q : memref<2x48x32xf32>)
  linalg.fill ins(%zero : f32) outs(%k : memref<2x48x32xf32>)
  linalg.fill ins(%zero : f32) outs(%v : memref<2x48x32xf32>)
  linalg.matmul ins(%tokens, %dwq : memref<96x32xf32>, memref<32x32xf32>) outs(%qTokens : memref<96x32xf32>)
  linalg.matmul ins(%tokens, %dwk : memref<96x32xf32>, memref<32x32xf32>) outs(%kTokens : memref<96x32xf32>)
  linalg.matmul ins(%tokens, %dwv : memref<96x32xf32>, memref<32x32xf32>) outs(%vTokens : memref<96x32xf32>)

  %kT = mgpu.alloc %dev : !mgpu.device -> memref<2x32x48xf32>
  linalg.transpose ins(%k : memref<2x48x32xf32>) outs(%kT : memref<2x32x48xf32>) permutation = [0, 2, 1]
  %scores = mgpu.alloc %dev : !mgpu.device -> memref<2x48x48xf32>
  linalg.fill ins(%zero : f32) outs(%scores : memref<2x48x48xf32>)
  linalg.batch_matmul ins(%q, %kT : memref<2x48x32xf32>, memref<2x32x48xf32>) outs(%scores : memref<2x48x48xf32>)
  // A parallel loop will do as well.
  scf.parallel (%b, %row, %column) = (%c0, %c0, %c0) to (%c2, %c48, %c48) step (%c1, %c1, %c1) {
    %s = memref.load %scores[%b, %row, %column] : memref<2x48x48xf32>
    %scaled = arith.mulf %s, %scale : f32
    memref.store %scaled, %scores[%b, %row, %column] : memref<2x48x48xf32>
  }
  %weights = mgpu.alloc %dev : !mgpu.device -> memref<2x48x48xf32>
  linalg.softmax dimension(2) ins(%scores : memref<2x48x48xf32>) outs(%weights : memref<2x48x48xf32>)

  // What attention adds to each token; then a layer norm without gain or bias.
  linalg.batch_matmul ins(%weights, %v : memref<2x48x48xf32>, memref<2x48x32xf32>) outs(%dx : memref<2x48x32xf32>)
  %mean = mgpu.alloc %dev : !mgpu.device -> memref<2x48xf32>
  %variance = mgpu.alloc %dev : !mgpu.device -> memref<2x48xf32>
  linalg.fill ins(%zero : f32) outs(%mean : memref<2x48xf32>)
  linalg.fill ins(%zero : f32) outs(%variance : memref<2x48xf32>)
  linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%dx : memref<2x48x32xf32>) outs(%mean : memref<2x48xf32>) {
  ^bb0(%in: f32, %sum: f32):
    %part = arith.divf %in, %width : f32
    %next = arith.addf %sum, %part : f32
    linalg.yield %next : f32
  }
  linalg.generic {indexing_maps = [#all, #rows, #rows], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%dx, %mean : memref<2x48x32xf32>, memref<2x48xf32>) outs(%variance : memref<2x48xf32>) {
  ^bb0(%in: f32, %m: f32, %sum: f32):
    %centred = arith.subf %in, %m : f32
    %square = arith.mulf %centred, %centred : f32
    %part = arith.divf %square, %width : f32
    %next = arith.addf %sum, %part : f32
    linalg.yield %next : f32
  }
  linalg.generic {indexing_maps = [#rows, #rows, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%mean, %variance : memref<2x48xf32>, memref<2x48xf32>) outs(%dx : memref<2x48x32xf32>) {
  ^bb0(%m: f32, %var: f32, %in: f32):
    %centred = arith.subf %in, %m : f32
    %moved = arith.addf %var, %epsilon : f32
    %deviation = math.sqrt %moved : f32
    %normal = arith.divf %centred, %deviation : f32
    linalg.yield %normal : f32
  }

  mgpu.memcpy %y, %dx, %host, %dev : memref<2x48x32xf32>, memref<2x48x32xf32>, !mgpu.device, !mgpu.device
  mgpu.free %dx, %dev : memref<2x48x32xf32>, !mgpu.device
  mgpu.free %dwq, %dev : memref<32x32xf32>, !mgpu.device
  mgpu.free %dwk, %dev : memref<32x32xf32>, !mgpu.device
  mgpu.free %dwv, %dev : memref<32x32xf32>, !mgpu.device
  mgpu.free %q, %dev : memref<2x48x32xf32>, !mgpu.device
  mgpu.free %k, %dev : memref<2x48x32xf32>, !mgpu.device
  mgpu.free %v, %dev : memref<2x48x32xf32>, !mgpu.device
  mgpu.free %kT, %dev : memref<2x32x48xf32>, !mgpu.device
  mgpu.free %scores, %dev : memref<2x48x48xf32>, !mgpu.device
  mgpu.free %weights, %dev : memref<2x48x48xf32>, !mgpu.device
  mgpu.free %mean, %dev : memref<2x48xf32>, !mgpu.device
  mgpu.free %variance, %dev : memref<2x48xf32>, !mgpu.device
  return
}
