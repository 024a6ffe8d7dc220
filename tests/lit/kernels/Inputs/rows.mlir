// Rows that threads share: a block for each, a subgroup for each, and
// neighbouring threads for neighbouring columns.
mgpu.device_config @config #mgpu.device_config<numDevices = 1>
#all = affine_map<(i, j) -> (i, j)>
#rows = affine_map<(i, j) -> (i)>

func.func @main(%x: memref<64x1000xf32>, %t: memref<96x48xf32>, %s: memref<64xf32>, %c: memref<1000xf32>) {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d = mgpu.get_device %c0 : !mgpu.device
  %dx = mgpu.alloc %d : !mgpu.device -> memref<64x1000xf32>
  %dt = mgpu.alloc %d : !mgpu.device -> memref<96x48xf32>
  %ds = mgpu.alloc %d : !mgpu.device -> memref<64xf32>
  %dc = mgpu.alloc %d : !mgpu.device -> memref<1000xf32>
  mgpu.memcpy %dx, %x, %d, %host : memref<64x1000xf32>, memref<64x1000xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %dt, %t, %d, %host : memref<96x48xf32>, memref<96x48xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %ds, %s, %d, %host : memref<64xf32>, memref<64xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %dc, %c, %d, %host : memref<1000xf32>, memref<1000xf32>, !mgpu.device, !mgpu.device
  linalg.reduce ins(%dx : memref<64x1000xf32>) outs(%ds : memref<64xf32>) dimensions = [1] {mgpu.name = "row_sum"}
    (%in: f32, %sum: f32) {
      %next = arith.addf %sum, %in : f32
      linalg.yield %next : f32
    }
  mgpu.memcpy %s, %ds, %host, %d : memref<64xf32>, memref<64xf32>, !mgpu.device, !mgpu.device
  linalg.reduce ins(%dx : memref<64x1000xf32>) outs(%dc : memref<1000xf32>) dimensions = [0] {mgpu.name = "column_sum"}
    (%in: f32, %sum: f32) {
      %next = arith.addf %sum, %in : f32
      linalg.yield %next : f32
    }
  mgpu.memcpy %c, %dc, %host, %d : memref<1000xf32>, memref<1000xf32>, !mgpu.device, !mgpu.device
  linalg.softmax {mgpu.name = "row_softmax"} dimension(1) ins(%dt : memref<96x48xf32>) outs(%dt : memref<96x48xf32>)
  mgpu.memcpy %t, %dt, %host, %d : memref<96x48xf32>, memref<96x48xf32>, !mgpu.device, !mgpu.device

  // A layer norm of the same rows: five operations, one launch.
  %zero = arith.constant 0.0 : f32
  %length = arith.constant 48.0 : f32
  %mean = mgpu.alloc %d : !mgpu.device -> memref<96xf32>
  %square = mgpu.alloc %d : !mgpu.device -> memref<96xf32>
  linalg.fill ins(%zero : f32) outs(%mean : memref<96xf32>)
  linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%dt : memref<96x48xf32>) outs(%mean : memref<96xf32>) {
  ^bb0(%in: f32, %sum: f32):
    %next = arith.addf %sum, %in : f32
    linalg.yield %next : f32
  }
  linalg.fill ins(%zero : f32) outs(%square : memref<96xf32>)
  linalg.generic {indexing_maps = [#all, #rows, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%dt, %mean : memref<96x48xf32>, memref<96xf32>) outs(%square : memref<96xf32>) {
  ^bb0(%in: f32, %total: f32, %sum: f32):
    %average = arith.divf %total, %length : f32
    %below = arith.subf %in, %average : f32
    %power = arith.mulf %below, %below : f32
    %next = arith.addf %sum, %power : f32
    linalg.yield %next : f32
  }
  linalg.generic {indexing_maps = [#rows, #rows, #all], iterator_types = ["parallel", "parallel"]}
      ins(%mean, %square : memref<96xf32>, memref<96xf32>) outs(%dt : memref<96x48xf32>) {
  ^bb0(%total: f32, %squares: f32, %out: f32):
    %average = arith.divf %total, %length : f32
    %variance = arith.divf %squares, %length : f32
    %deviation = math.sqrt %variance : f32
    %below = arith.subf %out, %average : f32
    %normal = arith.divf %below, %deviation : f32
    linalg.yield %normal : f32
  }
  mgpu.memcpy %t, %dt, %host, %d : memref<96x48xf32>, memref<96x48xf32>, !mgpu.device, !mgpu.device
  return
}
