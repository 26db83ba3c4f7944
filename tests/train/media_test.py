"""Preprocessing of pictures and clips in python/train: media_test.py TREBLE PROJECT

Expected sizes, frames and orders are the published processor's; python/train/check_media.py compares with it directly.
"""

import pathlib
import sys
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(sys.argv[2]) / "python" / "train"))

import media  # noqa: E402

PUBLISHED = media.processor_config((65536, 16777216), (4096, 25165824))
IMAGE, VIDEO = PUBLISHED["image_processor"], PUBLISHED["video_processor"]


class Sizes(unittest.TestCase):
    def test_images_are_fitted_to_multiples_of_32_within_the_limits(self):
        for size, fitted in (((1, 1), (256, 256)), ((33, 100), (160, 448)), ((48, 80), (224, 352)),
                             ((333, 1001), (320, 992)), ((720, 1280), (704, 1280)), ((1080, 1920), (1088, 1920)),
                             ((10, 2000), (32, 3648)),
                             ((5000, 8000), (3232, 5152))):
            self.assertEqual(media.fitted_size(*size, IMAGE), fitted)

    def test_clips_share_the_limit_among_their_frames(self):
        for (frames, height, width), fitted in (((4, 480, 640), (480, 640)), ((3, 240, 320), (256, 320)),
                                                ((5, 100, 100), (96, 96)), ((32, 1080, 1920), (640, 1152)),
                                                ((4, 16, 16), (32, 32))):
            self.assertEqual(media.fitted_size(height, width, VIDEO, frames), fitted)

    def test_frames_are_sampled_down_to_two_a_second_and_no_fewer_than_four(self):
        for (total, fps), indices in (((8, None), [0, 2, 5, 7]), ((48, 24), [0, 16, 31, 47]),
                                      ((90, 30), [0, 18, 36, 53, 71, 89]), ((3, 30), [0, 1, 2])):
            self.assertEqual(list(media.sampled_frames(total, VIDEO, fps)), indices)


class Patches(unittest.TestCase):
    def test_rows_stand_in_merge_block_order(self):
        image = np.zeros((64, 64, 3), np.uint8)
        for row in range(4):
            for column in range(4):
                image[16 * row:16 * row + 16, 16 * column:16 * column + 16] = 16 * (4 * row + column)
        patches, grid = media.patched(media.normalised(media.planes_of(image[None]), IMAGE), IMAGE)
        self.assertEqual(grid, (1, 4, 4))
        levels = np.rint(patches[:, 0] * 127.5 + 127.5).astype(int) // 16
        self.assertEqual([divmod(int(n), 4) for n in levels],
                         [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 3), (1, 2), (1, 3),
                          (2, 0), (2, 1), (3, 0), (3, 1), (2, 2), (2, 3), (3, 2), (3, 3)])

    def test_columns_run_over_channel_frame_row_and_column(self):
        frames = np.arange(2 * 16 * 16 * 3).reshape(2, 16, 16, 3) % 251
        frames = np.tile(frames, (1, 2, 2, 1)).astype(np.uint8)
        patches, _ = media.patched(media.normalised(media.planes_of(frames), VIDEO), VIDEO)
        levels = np.rint(patches[0] * 127.5 + 127.5).astype(int)
        places = ((0, 0, 0, 1), (0, 0, 1, 0), (0, 1, 0, 0), (1, 0, 0, 0), (2, 1, 15, 15))
        for channel, frame, row, column in places:
            place = ((channel * 2 + frame) * 16 + row) * 16 + column
            self.assertEqual(levels[place], frames[frame, row, column, channel])

    def test_an_image_of_its_own_size_is_not_resampled(self):
        image = np.random.default_rng(0).integers(0, 256, (256, 256, 3), dtype=np.uint8)
        levels = np.rint(media.image_media(image, IMAGE).patches * 127.5 + 127.5).astype(int)
        self.assertEqual(levels[0, :16].tolist(), image[0, :16, 0].tolist())


class Positions(unittest.TestCase):
    def test_text_goes_on_past_the_longer_side_of_a_picture(self):
        item = media.Media("image", np.zeros((24, 1536), np.float32), (1, 4, 6))
        positions = media.rope_positions([0] * 4 + [1] * 6 + [0], [item])
        self.assertEqual(positions[:, 4:10].tolist(), [[4] * 6, [4, 4, 4, 5, 5, 5], [4, 5, 6, 4, 5, 6]])
        self.assertEqual(positions[:, 10].tolist(), [7, 7, 7])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
