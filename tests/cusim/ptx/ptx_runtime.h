// All that translated PTX uses; one include for the files that ptx2cpp writes.
#pragma once

#include "ptx/ptx_arithmetic.h"
#include "ptx/ptx_bits.h"
#include "ptx/ptx_convert.h"
#include "ptx/ptx_frame.h"
#include "ptx/ptx_memory.h"
#include "ptx/ptx_output.h"
#include "ptx/ptx_types.h"
#include "ptx/ptx_warp.h"

#ifdef __SANITIZE_ADDRESS__
#error "translated kernels are to be compiled without AddressSanitizer; link cusim_unsanitized last"
#endif
