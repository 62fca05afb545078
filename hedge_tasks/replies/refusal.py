"""Replies that decline, and replies that say they do not know."""

from __future__ import annotations

import re

from hedge_tasks.replies.text import is_foreign, spelled_out

_PICTURE = r"(?:images?|pictures?|photos?|photographs?|visual\ content|visuals?|attachments?|files?)"
_WHICH = r"(?:the|this|that|any|an?|your|these|those|actual|attached|uploaded)"
_CANNOT = (
    r"(?:i|we|this\ model)(?:\ am|\ are)?(?:\ \w+ly|\ also|\ just)?\ (?:can\ not|could\ not|unable\ to|not\ able\ to"
    r"|not\ capable\ of|not\ in\ a\ position\ to|will\ not\ be\ able\ to|will\ not)(?:\ \w+ly)?"
)
_ACTS = (
    r"(?:(?:\w+(?:,|,?\ (?:or|and))\ ){0,3}"
    r"(?:help|assist|comply|fulfil\w*|provid\w+|offer|answer\w*|diagnos\w+|process\w*|interpret\w*|analy[sz]\w+"
    r"|access\w*|open|display|verif\w+|browse|respond|discuss|engage|rate|evaluat\w+|complete|perform|recogni[sz]e|comment"
    r"|do\ that|view\ or|look\ at|participate|review|examine|make\ a\ diagnosis|give))"
)
_REFUSAL = re.compile(
    rf"""
    \b{_CANNOT}\ {_ACTS}\b
    | \b{_CANNOT}\ (?:actually\ |directly\ )?(?:see|view|find|identify|detect|load|read)
      \ (?:{_WHICH}\ ){{0,2}}{_PICTURE}\b
      (?!\ of)
    | \b{_CANNOT}\ identify\ (?:the\ |this\ |any\ |specific\ |real\ ){{0,2}}(?:person|people|individuals?|man|woman)\b
    | \b(?:sorry|apologi[sz]e|afraid)\b[^.\n]{{0,20}}\b(?:unable|can\ not)\ (?:to\ )?{_ACTS}\b
    | \b(?:sorry|apologi[sz]e|unfortunately|afraid)\b[^.\n]{{0,30}}\bi\ (?:am\ )?(?:can\ not|unable\ to|not\ able\ to
      |will\ not)
      \ (?!(?:see|find|spot|detect|observe|locate|make|tell|say|determine|be|confirm|verify)\b)
    | \bi\ (?:do\ not|lack|currently\ lack)\ ?(?:have\ )?(?:the\ |any\ |direct\ ){{0,2}}(?:ability|capability
      |capacity|access)\b
    | \bi\ (?:must|have\ to|will\ have\ to|would\ have\ to)?\ ?(?:respectfully\ )?(?:decline|refuse)\b
    | \bi\ do\ not\ (?:see|have)\ (?:an?|any|the|your)\ {_PICTURE}\b(?!\ of)
    | \bno\ {_PICTURE}\ (?:was|were|is|are|has|have|could|seems?|provided|attached|uploaded|included
      |available|visible)\b
    | \b{_PICTURE}\ (?:did|does|do|has|have|was|were|could|can)\ not\ (?:been\ |be\ )?(?:load|loaded|upload|uploaded
      |attached|provided|displayed|come|open|opened|render|rendered)\b
    | \bagainst\ my\ (?:guidelines|policy|programming)\b
    """,
    re.VERBOSE,
)
_AS_AN_AI = re.compile(r"\bas an? (?:(?:large|text-based|text) )*(?:ai|llm|language model|artificial intelligence)\b")

_DOUBT = re.compile(
    r"""
    \bnot\ (?:\w+\ )?(?:sure|certain)\b
    | \b(?:do|does|can|could)\ not\ (?:\w+\ )?(?:know|tell|determine|say|decide|confirm|verify
      |be\ (?:sure|certain|determined|excluded|ruled|confirmed|said))\b
    | \b(?:can|could)\ not\ be\ (?:\w+\ )?(?:determined|excluded|ruled|confirmed|assessed|told|known)\b
    | \b(?:unable|impossible|hard|difficult|not\ (?:possible|able|easy))\ (?:for\ me\ )?to\ (?:\w+\ )?(?:tell|determine
      |say|know|decide|judge|see|make\ out|answer|be)\b
    | \b(?:it|that|this)\ (?:really\ )?depends\b | \b(?:unsure|uncertain|undecided)\b
    | \bno\ (?:idea|clue|way\ (?:to|of))\b
    | \bequally\ (?:plausible|likely|possible|valid|probable)\b
    | \b(?:is|are|remains?|seems?)\ (?:very\ |rather\ |quite\ )?(?:unclear|ambiguous|inconclusive)\b
    | \bunclear\ (?:whether|if)\b
    | \bnot\ (?:\w+\ )?(?:clear|enough\ information)\b | \binsufficient\ information\b
    | \A\W*(?:maybe|perhaps|possibly|unclear|it\ depends)\b
    """,
    re.VERBOSE,
)
_UNDECIDED = re.compile(
    r"""
    \b(?:can|could)\ not\ (?:\w+ly\ )?(?:be\ (?:\w+ly\ )?)?(?:determined?|tell|told|say|decide|confirm(?:ed)?
      |assess(?:ed)?|answer(?:ed)?|know|judged?|evaluated?)\b
    | \bi\ (?:\w+ly\ )?do\ not\ (?:\w+ly\ )?know\b | \b(?:am|are)\ not\ (?:\w+\ )?(?:sure|certain)\b
    | \b(?:unable|impossible|hard|difficult|challenging|not\ (?:possible|able|easy))\ (?:for\ me\ )?to\ (?:\w+ly\ )?
      (?:tell|determine|say|know|decide|judge|answer|provide|assess)\b
    | \b(?:unclear|not\ clear)\ (?:whether|if|from)\b
    | \b(?:not\ enough|insufficient)\ (?:information|details?|data|context)\b
    | \bno\ (?:idea|clue)\b | \A(?:i\ am\ )?(?:unsure|uncertain|undecided|unclear|unknown|unanswerable
      |not\ answerable)\W*\Z
    | \A(?:that|it)\ (?:really\ )?depends\b | \A(?:n/a|not\ applicable|no\ (?:answer|comment))\W*\Z
    | \btoo\ (?:\w+\ ){1,4}?to\ (?:be\ )?(?:\w+ly\ )?(?:tell|say|see|read|identif|determine|make|judge|assess|interpret
      |recogni)
    | \b(?:not\ (?:\w+ly\ )?(?:legible|readable|recogni[sz]able|assessable|interpretable|determinable)
      |illegible|unreadable|undetermined)\b
    | \bdoes\ not\ (?:allow|permit)\b
    | \bi\ (?:would\ )?(?:rather|prefer)\ not\b
    """,
    re.VERBOSE,
)
_MAY = re.compile(r"\b(?:may|might|could|maybe|perhaps|possibly|whether|if|unless|too (?:blurry|dark|small))\b")

OF_ANY = re.compile(
    r"\W*(?:an|a candidate|any|(?:every|each|all)(?=[^,;:]*\b(?:must|should|ha(?:s|ve) to|needs? to)\b))"
    r"(?: candidate)? (?:answer|response|reply|statement|claim|output)s?\b",
    re.IGNORECASE,
)
"""Begins a clause about answers as such, and not about the one at hand: "An answer is called supported"."""

_DENIED_ABROAD = re.compile(
    r"不|没|非|無|无|ない|ません|아니|\b(?:nicht|kein\w*|pas|non|no|ni|niet|geen|nie|не|нет|não|nem|inte|ikke|değil|không|tidak|bukan"
    r"|ليس|لا|नहीं|weder|noch)\b",
    re.IGNORECASE,
)

_ACT_ABROAD = (
    "determin détermin interpr stellen analy analiz analis evalu évalu valut respond répond beantwort beurteil bestimm "
    "sagen zeggen dire decir dizer saber savoir sais sé so sei wissen weiss bepalen beoordelen знаю могу возможно "
    "aider ayudar ajudar aiutare helfen"
)
"""How words begin that say what one is asked to do, or to know; short ones are whole words."""
_ACTS_BEGIN = "|".join(act if len(act) > len("dire") else rf"{act}\b" for act in _ACT_ABROAD.split())
_DECLINES_ABROAD = re.compile(
    rf"(?:{_DENIED_ABROAD.pattern}|\bne\b)[^.;:!?]{{0,60}}?\b(?:{_ACTS_BEGIN})"
    r"|weiss (?:ich |es |das )*nicht|weet (?:ik |het |dat )*niet|keine ahnung|aucune idée|ni idea|nessuna idea"
    r"|geen idee"
    r"|[无無]法(?!排除)|不知道|看不清|分?わかりません|できません|모르|(?:알|할) 수 없"
    r"|لا (?:أعرف|أعلم|أستطيع|يمكنني)|पता नहीं|नहीं (?:पता|बता|कह)",
    re.IGNORECASE,
)
_QUOTED = re.compile(r'"[^"\n]*"')


def declines(text: str) -> bool:
    """Whether a text says that the model will not or cannot do what it is asked, or that it sees no image.

    "I cannot see a dog in the image" is no refusal: it says what is not in the image. Nor is what a text quotes.

    Example:
        >>> declines("I'm unable to see the image."), declines("I cannot see a dog in the image.")
        (True, False)
    """
    spoken = " ".join(spelled_out(_QUOTED.sub(" ", text)).split())
    abroad = is_foreign(spoken) and _DECLINES_ABROAD.search(spoken)
    return bool(abroad or _REFUSAL.search(spoken) or _AS_AN_AI.search(spoken))


def doubts(text: str) -> bool:
    """Whether a text says that its author does not know.

    Example:
        >>> doubts("It is unclear."), doubts("I can't tell."), doubts("It is not red.")
        (True, True, False)
    """
    return bool(_DOUBT.search(" ".join(spelled_out(text).split())))


def undecided(clause: str) -> bool:
    """Whether a clause says that its author cannot tell, and nothing besides.

    "The mass is not clear" is about the mass.

    Example:
        >>> undecided("It is not clear whether it is a cyst"), undecided("The lungs are not clear")
        (True, False)
    """
    return bool(_UNDECIDED.search(" ".join(spelled_out(clause).split())))


def leaves_open(clause: str) -> bool:
    """Whether a clause names a possibility or a condition instead of stating a fact."""
    return bool(_MAY.search(spelled_out(clause)))


def denied_abroad(near: str) -> bool:
    """Whether words of another language in front of an answer deny it.

    Example:
        >>> denied_abroad("La respuesta no es "), denied_abroad("La respuesta es ")
        (True, False)
    """
    return bool(_DENIED_ABROAD.search(near))
