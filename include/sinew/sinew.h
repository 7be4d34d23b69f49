/* sinew, the C interface: a model is opened once and then run on one observation at a time.
 *
 * Every function that can fail returns a sinew_status, and then sinew_last_error() says in one line what was
 * wrong and what to do about it. No function throws, aborts or prints. Strings are UTF-8. A struct whose
 * first field is struct_size must have it set to its sizeof and the rest zeroed: `sinew_hand hand =
 * {.struct_size = sizeof hand};`. This is how a program built against this header keeps working with later
 * libraries of the same major name (libsinew.so.0), where structs may have grown at their end.
 */
#ifndef SINEW_SINEW_H
#define SINEW_SINEW_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define SINEW_API __attribute__((visibility("default")))
#else
#define SINEW_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Raised by one whenever something is added to this header. */
#define SINEW_ABI_VERSION 2

/* SINEW_ABI_VERSION of the library that is loaded: not below the one of the header this program was built
 * with. */
SINEW_API int sinew_abi_version(void);
/* "MAJOR.MINOR.PATCH" of the library that is loaded. */
SINEW_API const char* sinew_version(void);

typedef enum sinew_status {
  SINEW_OK = 0,
  SINEW_ERROR_USAGE = 1,       /* an argument makes no sense */
  SINEW_ERROR_NOT_FOUND = 2,   /* a file or a name does not exist */
  SINEW_ERROR_IO = 3,          /* the operating system refused a read or a write */
  SINEW_ERROR_FORMAT = 4,      /* a file breaks the rules of its format */
  SINEW_ERROR_MISMATCH = 5,    /* well-formed, but not what the model needs */
  SINEW_ERROR_UNSUPPORTED = 6, /* cannot be honoured by this build or on this machine */
  SINEW_ERROR_LIMIT = 7,       /* a bound on size, count or depth was exceeded */
  SINEW_ERROR_NO_MEMORY = 8,
  SINEW_ERROR_INTERNAL = 9 /* a bug in sinew */
} sinew_status;

/* What the last sinew call of this thread that returns a status said: empty after SINEW_OK. Valid until the
 * next such call of this thread. Never NULL. */
SINEW_API const char* sinew_last_error(void);

/* ---- Hands: a picture and the box of a hand in, pose, shape and camera out (the HaMeR network) ---- */

/* An opened model. Used by one thread at a time; different ones may be used at the same time. */
typedef struct sinew_hands sinew_hands;

/* A zero (NULL, 0) in any field asks for its default. */
typedef struct sinew_hands_options {
  size_t struct_size;
  const char*
      policy;  /* numeric policy: "f32", "bf16", "bfp8"; default: the fastest that meets its accuracy bar */
  int threads; /* including the caller's; default: as many as this process has CPUs */
  const char* crop; /* "pillow" (default) or "opencv": see docs/NUMERICS.md */
  double rescale;   /* side of the crop relative to the box, default 2.0 */
  /* Since ABI version 2. */
  const char* cache; /* folder that keeps prepared weights, so that the next start takes milliseconds; "": the
                        one of the sinew program ($SINEW_CACHE, else $XDG_CACHE_HOME/sinew, else
                        ~/.cache/sinew); default: nothing is kept */
} sinew_hands_options;

/* In pixels of the frame; x2 and y2 exclusive. */
typedef struct sinew_box {
  double x1, y1, x2, y2;
  int is_right; /* 0: a left hand */
} sinew_box;

/* One hand. Rotations and betas are those of the network's right-hand model, also for a left hand, which is
 * seen mirrored; cam_t_full and the joints are in the frame as it is. Camera axes: x right, y down, z away
 * from the camera. */
typedef struct sinew_hand {
  size_t struct_size;
  float rotmat[16][3][3]; /* row-major; joint 0 is the global orientation, then the 15 MANO joints */
  float betas[10];        /* shape */
  float cam[3];           /* weak-perspective camera of the crop: s, tx, ty */
  float cam_t_full[3];    /* translation in metres, camera of the whole frame */
  float focal_length;     /* of that camera, in pixels; its centre is the centre of the frame */
  float joints_3d[21][3]; /* metres, camera axes, origin at the wrist: add cam_t_full to place it; OpenPose
                             order; of a built-in hand of average size */
  float joints_2d[21][2]; /* pixels of the frame */
} sinew_hand;

/* `model_path`: a published folder, a .ckpt or a .safetensors file. `options` may be NULL. On success *out is
 * to be given to sinew_hands_close(); on failure it is NULL. */
SINEW_API sinew_status sinew_hands_open(const char* model_path, const sinew_hands_options* options,
                                        sinew_hands** out);

/* `rgb`: rows of `width` pixels of three bytes, top row first; `row_stride` bytes from one row to the next, 0
 * when there is no padding. Read during the call only. `out` is written only when SINEW_OK is returned. */
SINEW_API sinew_status sinew_hands_run(sinew_hands* hands, const uint8_t* rgb, int width, int height,
                                       ptrdiff_t row_stride, const sinew_box* box, sinew_hand* out);

/* NULL is allowed. */
SINEW_API void sinew_hands_close(sinew_hands* hands);

#ifdef __cplusplus
}
#endif

#endif
