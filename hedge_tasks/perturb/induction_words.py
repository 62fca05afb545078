"""SYN: candidates that mean nearly what the right answer does, by sentence embeddings (SHALE section 3.2)."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

_WORDS = """
red, orange, yellow, green, blue, purple, pink, brown, black, white, grey, turquoise, violet, gold, silver, beige
circle, square, triangle, star, heart, hexagon, rectangle, oval, diamond, pentagon, cross, crescent, ring, cube, cone
left, right, up, down, above, below, behind, in front, forwards, backwards, above the others, below the others
one, two, three, four, five, six, seven, eight, nine, ten, none, a dozen
standing, sitting, lying, kneeling, jumping, running, walking, squatting, bending, leaning, climbing, raising both arms
happy, sad, angry, surprised, scared, calm, tired, disgusted, bored, amused, worried, confused, smiling, frowning
dog, wolf, fox, cat, lion, tiger, leopard, cheetah, bear, raccoon, squirrel, rabbit, mouse, rat, hamster, beaver, otter
horse, donkey, zebra, cow, bull, sheep, goat, deer, moose, camel, giraffe, elephant, rhinoceros, hippopotamus, pig
bird, sparrow, robin, crow, owl, eagle, hawk, duck, goose, swan, chicken, turkey, parrot, penguin, pigeon, flamingo
fish, shark, whale, dolphin, octopus, crab, lobster, shrimp, frog, toad, turtle, snake, lizard, crocodile, snail
ant, bee, wasp, butterfly, moth, spider, beetle, dragonfly, fly, mosquito, ladybird, grasshopper, worm
apple, pear, peach, plum, cherry, orange fruit, lemon, banana, grape, strawberry, melon, tomato, potato, carrot, onion
bread, cake, pizza, sandwich, hamburger, taco, noodles, rice, soup, salad, cheese, egg, pancake, sushi, dumpling
house, hut, tower, church, temple, mosque, synagogue, castle, barn, tent, bridge, school, hospital, factory, shop
tree, bush, flower, rose, tulip, sunflower, leaf, grass, cactus, mushroom, forest, mountain, river, lake, beach, island
car, bus, truck, van, train, tram, bicycle, motorcycle, boat, ship, canoe, sailing boat, aeroplane, helicopter, rocket
chair, bench, sofa, stool, table, desk, bed, cupboard, shelf, lamp, mirror, clock, carpet, curtain, window, door
cup, mug, glass, bottle, bowl, plate, pan, pot, kettle, fork, knife, spoon, basket, box, bag, bucket, vase
phone, laptop, keyboard, television, camera, radio, book, newspaper, pencil, pen, scissors, hammer, saw, ladder, rope
ball, balloon, kite, doll, drum, guitar, violin, piano, trumpet, flute, trophy, medal, coin, candle, umbrella, hat
a person kicking a ball, a person holding a ball, a person throwing a ball, a person catching a ball
a person holding a balloon, a person letting go of a balloon, a person flying a kite
a person pushing a cart, a person pulling a cart, a person riding in a cart, a person loading a cart
a person carrying a box, a person opening a box, a person sitting on a box, a person lifting a box
football, basketball, volleyball, handball, tennis, table tennis, badminton, bowling, golf, baseball, cricket, hockey
rugby, the Olympic Games, the Paralympic Games, the Commonwealth Games, the Asian Games, motor racing, cycling, rowing
France, Italy, Germany, Japan, Spain, Portugal, Belgium, Austria, Poland, Ireland, Netherlands, Romania, China, Korea
Paris, Rome, Berlin, Tokyo, Madrid, Lisbon, Brussels, Vienna, Warsaw, Dublin, Bucharest, Beijing, Seoul, London, Athens
Christianity, Islam, Judaism, Taoism, Buddhism, Hinduism, Sikhism, Shinto, Confucianism
Christmas, Easter, Halloween, Valentine's Day, Thanksgiving, New Year, Carnival, Mother's Day
a kingdom, a republic, a federal republic, a constitutional monarchy, an absolute monarchy, a confederation
chess, draughts, backgammon, dominoes, poker, bridge, roulette, Pac-Man, Tetris, Space Invaders, Donkey Kong, Pong
"""

CANDIDATES = tuple(dict.fromkeys(word.strip() for line in _WORDS.strip().splitlines() for word in line.split(",")))
"""Words for things that pictures show, so that SYN works without a list of the user's own."""


def nearer_words(
    target: str,
    wrong: Sequence[str],
    candidates: Sequence[str],
    rng: random.Random,
    *,
    nearest: float,
    too_near: float,
    model: str | None = None,
) -> list[str]:
    """Wrong answers that are harder than those given: for each of them one at least as near to the right answer.

    A wrong answer gives way to a candidate that is strictly nearer, drawn from those among the nearest ones; it stays
    where there is none. So neither the mean similarity nor that of the hardest one falls.

    Args:
        target: The right answer.
        wrong: The wrong ones.
        candidates: What to choose from besides.
        rng: Draws among the eligible ones.
        nearest: The replacements are among the `nearest * len(wrong)` nearest of all.
        too_near: Candidates of this cosine similarity or more may mean the right answer, and are left out.
        model: Of sentence-transformers; None: the default of the embedding clustering.

    Returns:
        As many as `wrong`, in their places, all different.

    Raises:
        ModelUnavailableError: The model cannot be had.
    """
    right, *wrong_vectors = _embed([target, *wrong], model)
    own = {text: float(vector @ right) for text, vector in zip(wrong, wrong_vectors, strict=True)}
    excluded = {text.casefold() for text in (*wrong, target)}
    words, vectors = _embed_candidates(tuple(candidates), model)
    near = zip(words, map(float, vectors @ right), strict=True)
    pool = {text: cosine for text, cosine in near if cosine < too_near and text.casefold() not in excluded} | own
    head = sorted(pool, key=lambda text: -pool[text])[: math.ceil(len(wrong) * max(nearest, 1.0))]
    replacements: dict[str, str] = {}
    # The nearest first: it has the fewest that are nearer still.
    for text in sorted(wrong, key=lambda text: -own[text]):
        nearer = [
            word for word in head if pool[word] > own[text] and word not in replacements.values() and word not in own
        ]
        replacements[text] = rng.choice(nearer) if nearer else text
    return [replacements[text] for text in wrong]


@lru_cache(maxsize=4)
def _embed_candidates(candidates: tuple[str, ...], model: str | None) -> tuple[tuple[str, ...], np.ndarray]:
    return candidates, _embed(list(candidates), model)


def _embed(texts: list[str], model: str | None) -> np.ndarray:
    from hedge_tasks.llm.encoders import DEFAULT_MODEL, load_encoder, unit_vectors
    from hedge_tasks.llm.loading import default_device

    encoder = load_encoder(model or DEFAULT_MODEL, None, default_device(None))
    return np.asarray(unit_vectors(encoder(texts)), dtype=np.float64)
