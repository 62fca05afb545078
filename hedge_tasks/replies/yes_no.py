"""Yes or no, also where it is said in a sentence about what was asked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar

from hedge_tasks.replies.abroad import contrasts_abroad, denies_abroad, language_of, restated
from hedge_tasks.replies.choice import OUTSIDE, SEVERAL, AnswerMatch, choose
from hedge_tasks.replies.reading import LEADING, LINE, OPENING, Reading
from hedge_tasks.replies.refusal import leaves_open
from hedge_tasks.replies.text import is_foreign, plain, spelled_out
from hedge_tasks.replies.word_sets import turned, word_set

YES, NO = "yes", "no"

_END = r"(?=\s*(?:[.,;:!?()\]\"'\n/&|।-]|\Z)"
_GO_ON = (
    r"|\s+(?:there|it|the|i|he|she|they|we|this|that|these|those|because|since|as|for|and|or|not|indeed|in|please|to)"
    r"\b)"
)

# Words of other languages count where they stand for themselves, and begin no sentence: "Non è chiaro".
_FOREIGN_YES = (
    "sí sì oui да sim ja si はい 对 是的 是 有 有的 예 네 نعم أجل हाँ हां जी có đúng vâng evet ναι כן igen ano áno kyllä"
    " jah taip jā так بله بلی ہاں হ্যাঁ ஆம் ya oo ndiyo ใช่ jawohl"
)
_FOREIGN_NO = (
    "нет не nein いいえ 不是 没有 否 不 não لا كلا नहीं không hayır nie όχι לא nem ne ei ні خیر نه نہیں না இல்லை tidak"
    " bukan hapana ไม่ ไม่ใช่ 아니요 아니오 아뇨 nee nej nei nu non"
)


def _any_of(words: str) -> str:
    return "|".join(sorted(map(re.escape, words.split()), key=len, reverse=True))


_YES_WORD = re.compile(
    rf"(?:a\ )?(?:yes|yeah|yep|yup)\b|जी\ ह(?:ाँ|ां)"
    rf"|(?:indeed|affirmative|absolutely|certainly|definitely|{_any_of(_FOREIGN_YES)})(?!\w){_END})"
    rf"|(?:true|correct|right){_END}{_GO_ON}|y(?=\n|\Z)|(?:i\ (?:think|believe)\ so)\b",
    re.IGNORECASE,
)
_NO_WORD = re.compile(
    rf"(?:✗\s*)?(?:"
    rf"(?:nope|nah)(?!\w)|(?:{_any_of(_FOREIGN_NO)})(?!\w){_END})"
    rf"|(?:absolutely|certainly|definitely|of\ course|probably|presumably|apparently|(?:most\ )?likely|surely|clearly"
    rf"|i\ (?:think|guess|believe|suppose)|i\ am\ afraid|i'm\ afraid|unfortunately|evidently)\ not\b(?!\ only){_END})"
    rf"|(?:absolutely|certainly|definitely|of\ course)\ not\b"
    rf"|(?:a\ )?(?:no|false|incorrect|wrong|negative|none)"
    rf"(?!\ (?:doubt|question|of\ (?:these|those|the\ above))){_END}{_GO_ON}"
    rf"|none\ (?:of|(?:is|are|was|were)\ (?:seen|visible|present|noted|found|identified|detected))\b|n(?=\n|\Z)"
    rf"|(?:not\ really|not\ at\ all|not\ quite|not\ exactly|(?:highly\ |very\ )?unlikely|doubtful){_END})"
    rf"|not\ (?:in|on|here|visible|present|seen|that\ i\ can\ (?:see|tell|find|spot))\b"
    rf"|nothing\ (?:of|like)\ (?:that|the)\b"
    rf"|i\ (?:do\ not|don't)\ (?:think|believe)\ so\b)",
    re.IGNORECASE,
)
_NONE_OF_THESE = re.compile(
    r"none of (?:these|those|the above|the (?:\w+ ){0,2}(?:options|choices|answers|statements|alternatives))\b",
    re.IGNORECASE,
)
_SI = re.compile(r"si\b", re.IGNORECASE)
# Said of a part: "Yes on the left, no on the right".
_PART = re.compile(r"\b(yes|no)(?=\s*(?:[.;:!)\n]|\Z|,?\s*(?:on|in|at|for|to|from)\b))", re.IGNORECASE)
# In other languages it is "thanks" or "so".
_TAK = re.compile(r"tak(?=\W|\Z)", re.IGNORECASE)
_ASKED_IN_POLISH = re.compile(r"\W*czy\b", re.IGNORECASE)
_MARK = re.compile(r"([✓✗])(?=\W*\Z)")
_BOTH = re.compile(
    r"(?:yes[^\w?]+(?:and|or|/)?[^\w?]*no|no[^\w?]+(?:and|or|/)?[^\w?]*yes)\b(?:(?!\W+\w)|(?:\W+(?:yes|no)\b)+\W*\Z)"
    r"|either yes or no",
    re.IGNORECASE,
)
# What a question about something being there, or being normal, is answered with in one word.
_THERE = re.compile(r"(?:present|positive|detected|visible|seen)\W*\Z", re.IGNORECASE)
_NOT_THERE = re.compile(r"(?:absent|not\ (?:detected|evident|identified))\W*\Z", re.IGNORECASE)
_IS_NORMAL = re.compile(rf"(?P<not>ab|not\ )?normal{_END})", re.IGNORECASE)
_NOTHING_WRONG = re.compile(
    r"(?:there (?:is|are) )?no (?:(?:acute|significant|obvious|evident|focal|visible|apparent|radiographic|gross"
    r"|cardiopulmonary|intracranial|intra-?abdominal|bony|osseous|cardiac|pulmonary|pleural) ){0,4}"
    r"(?:abnormalit(?:y|ies)|abnormal findings?|pathology)"
    r"(?: (?:is|are|was|were))?(?: (?:seen|detected|identified|noted|present|visible|found))?"
)
# "A) Yes B) No", "1 = yes, 0 = no"
_MARKED = re.compile(
    r"(?<!\w)[(\[]?([A-Za-z0-9])[\"']?\s*(?:[).:=\]]|for\b|if\b|means\b)\s*[\"']?(yes|no)\b", re.IGNORECASE
)
_MARK_ONLY = re.compile(
    r"[(\[]?([A-Za-z0-9])(?![.,]\d)(?=[)\].:,]|\s*\Z|\n)[)\].:,]*\s*(?:[\"']?(?P<said>yes|no)\b)?", re.IGNORECASE
)
_PRESENCE = frozenset(
    [
        "present",
        "detected",
        "exists",
        "exist",
        "found",
        "visible",
        "is present",
        "status",
        "value",
        "positive",
        "presence",
    ]
)
_NAMES = frozenset(["object", "finding", "class", "name", "target", "item", "entity"])

_STOP = word_set(
    "is are was were do does did can could will would has have had there any a an the this that these those it "
    "its of on in at to for with by from and or some you see be being image picture photo photograph show shown "
    "shows contain contains visible present appear appears object i depicted seen sign evidence indication scene"
)
# What a question asks with, and not about: "does the patient exhibit symptoms consistent with".
_FRAME = word_set(
    "investigate further warrant worth likely "
    "opinion expert medical assessment based patient exhibit symptom consistent potential possible possibility "
    "diagnosis case clinical suggest suggestive indicate indicative indicat indication suspect suspicion observe "
    "observ identify detect confirm ascertain whether we should consider concern examin visual inspection presence "
    "exist according think believe say tell notice information your finding "
)
_LOOKS_FOR = word_set(
    "presence symptom consistent possibility diagnosis suggest suggestive indicate indicative indicat indication "
    "observe observ identify detect notice exist evidence sign "
)
# "Does this slide show a carcinoma?" is about the carcinoma.
_PICTURE_SHOWS = re.compile(
    r"\A(?:does|do|is|are|can|did) (?:the|this|these|that|your) (?:[\w-]+ ){0,3}?(?:images?|pictures?|photos?"
    r"|photographs?|x-?rays?"
    r"|scans?|ct|mri|radiographs?|films?|slides?|frames?|ultrasounds?|biopsy|section|mammogram|figure|sequence)"
    r" (?=(?:show|contain|depict|reveal|demonstrat|suggest|indicat|display)\w*\b)"
)
_INTRODUCED = re.compile(r"\A(?:in|from|based on|according to|given|looking at|as) [^,?]{1,60}, ")
_OPPOSITE = {
    "left": "right",
    "right": "left",
    "upper": "lower",
    "lower": "upper",
    "anterior": "posterior",
    "posterior": "anterior",
}
# "No consolidation, effusion or pneumothorax" denies them all.
_LISTED = re.compile(r"\b(?:no|without|negative for|free of|absence of|rules out)\b(?P<list>[^.;:!?\n]{0,300})")
_LIST_COMMA = re.compile(
    r",\s+(?=(?:(?:or|nor)\s+)?(?!(?:is|are|was|but|with|an?|the|there|which|although|however|so|it|this|no|and)\b)"
    r"(?:[\w-]+\s+){0,3}[\w-]+\s*(?:,|\b(?:or|nor)\b|\Z))"
)
_DENIES_SAYING = re.compile(
    r"\b(?:can not|could not|would not|do not|does not|not) (?:\w+ly )?"
    r"(?:(?:say|claim|state|conclude|assume|exclude|agree|mean)\b|(?:true|the case|correct|right) that\b)"
)
# A line of findings: "Small left apical pneumothorax."
_FINDING_LINE = re.compile(
    r"(?:\A|(?<=[.:\n]))\s*(?:\d\.\s*)?(?P<said>[a-z\d-]+(?: [a-z\d-]+){1,6}?)"
    r"(?: with(?:out)? [^.;\n]{1,80})?\s*(?=\.|\n|\Z)"
    r"|(?:(?<=impression:)|(?<=diagnosis:)|(?<=conclusion:))\s*(?:\d\.\s*)?(?P<one>[a-z-]+)"
    r"(?: without [^.;\n]{1,80})?\s*(?=\.|\Z)"
)
_OF_FINDINGS = word_set(
    "small large big tiny mild moderate severe minimal marked left right bilateral apical basal basilar upper lower "
    "middle acute chronic subtle extensive mild-to-moderate moderate-to-severe right-sided left-sided trace lobar "
    "diffuse focal new stable there is are a an the "
)

_NTH = re.compile(r"\d+(?:st|nd|rd|th)|and")
_WHERE = re.compile(
    r"\b(?:in|on|from|of|within) (?:this|the|that) (?:[\w-]+ ){0,3}?(?:image|picture|photo|photograph|x-?ray|scan|ct"
    r"|mri|radiograph|radiography|film|slide|view|scene|figure|frame|slice|section|biopsy|specimen|mammogram"
    r"|ultrasound|sonogram"
    r"|echocardiogram|angiogram|fundus)s?\b(?: (?:image|photo)s?)?(?: of\b[^?.]*)?"
    r"|\b(?:based on|judging (?:by|from)|upon)\b[^?.,]*"
)
_IRREGULAR = {
    "people": "person",
    "men": "man",
    "women": "woman",
    "children": "child",
    "mice": "mouse",
    "knives": "knife",
}
_PREPOSITIONS = word_set("on in at near behind under over next beside with by of wearing holding between above")
_TELL_WHERE = _PREPOSITIONS | word_set("below to from within inside sitting standing lying")

_NOUN_DENIED = word_set("0 no without neither nor lacks lack lacking zero devoid absence negative")
_GONE = frozenset(["absent", "missing", "nowhere", "invisible", "lacking"])
_SEEN = word_set("visible present seen there here shown depicted detected found identified in evident noted")
_VERBS = word_set(
    "is are was were shows show showing contains contain has have see sees depicts depict features feature "
    "includes include appears appear sits stands lies lying sitting standing visible present seen reveals "
    "demonstrates suggests indicates walks holds wears can consistent keeping compatible typical characteristic "
    "diagnostic suggestive indicative displays captures exists looks seems"
)
_SAYS_NOTHING = (
    _STOP
    | _NOUN_DENIED
    | _GONE
    | _SEEN
    | _VERBS
    | word_set(
        "not indeed clearly clear obviou definite according based provided given patient human assistant answer also "
        "any one xray x-ray ct mri scan film radiograph medical ultrasound slice view which small large big tiny mild "
        "moderate severe minimal left right bilateral chest corner foreground background center middle side lower "
        "upper top bottom right-sided left-sided think believe confirm shown single two several these here identified "
        "look seem appear we longer such thing"
    )
)
# "The lungs are clear" says no to what lungs are clear of.
_NORMAL = re.compile(
    r"(?:the |both )?(?P<of>[a-z-]+(?: [a-z-]+)?) (?:is|are|appears?|looks?)(?: to be)? (?:\w+ly )?"
    r"(?:clear|normal|unremarkable)(?: bilaterally| throughout| in (?:size|shape|appearance))?"
)
_NOT_NORMAL = word_set("enlarged dilated abnormal widened inflamed swollen thickened displaced collapsed")
_FINDINGS = word_set(
    "abnormal abnormality lesion mass nodule tumor fracture pathology disease hemorrhage infarct stroke effusion "
    "consolidation opacity edema pneumonia cyst calcification defect injury metastasis hernia abscess aneurysm "
    "obstruction perforation infiltrate"
)
_FINDING_ENDING = re.compile(r"(?:itis|oma|osis|megaly|pathy|thorax|ectasis|rrhage|phrosis|cele|emia|plasia|trophy)$")
_FIELD = re.compile(
    r"(?m)^\W*(?P<name>[^:\n]{1,60}):\s*(?:(?P<no>no|none|absent|negative|false|not (?:seen|present|visible))"
    r"|yes|present|positive|true|visible)\W*$"
)
_THERE_IS = re.compile(r"\w+\W+(?:there (?:is|are)|i (?:can )?see|it shows) (?P<what>[^.,;!?\n]{1,60})", re.IGNORECASE)
_SHOWS = word_set("show contain depict include reveal demonstrate display feature have")
_PICTURES = word_set("scan image picture study examination exam x-ray xray film radiograph")
_ABNORMAL = re.compile(r"\b(?:an )?abnormal\b")
_OF_LUNGS = frozenset(
    ["pneumonia", "consolidation", "infiltrate", "infiltration", "opacity", "edema", "mass", "nodule"]
)
_BARE = (
    (_STOP - word_set("image picture photo photograph object scene"))
    | _SEEN
    | _GONE
    | word_set(
        "i he she they we one ones some any none no not nothing never think believe can do does did seem look like so "
        "at all clearly indeed also sure certainly right correct true accurate the case false wrong incorrect "
        "spot notice locate observe find seems make out such sign them a several two three few many least anywhere else"
    )
)
"""Words of grammar, with which a clause says yes or no and says nothing of its own."""
_DENYING = _NOUN_DENIED | _GONE | word_set("not none nothing never false wrong incorrect")
_BARE_VERBS = word_set(
    "is are was were do does did has have see spot find locate notice observe make appear appears seem seems none sign "
    "evidence"
)
_STANDS_FOR = re.compile(r"\b(?:an? (?:[\w-]+ ){1,2}ones?|such (?:an? )?[\w-]+)\b")
_STAND_IN = word_set("there it one ones some any them that several two three many few")
_COUNTS = word_set("one two three four five six seven eight nine ten several many few more least both other another")
_CLAUSE = re.compile(
    r"[.!;,:]+(?=\s|\Z)|\n|\?[\"']?(?=\s|\Z)"
    r"|\b(?:but|however|although|though|while|whereas"
    r"|except|so|only|and (?=no\b|not\b|there\b))"
)
# "A pneumothorax is a condition in which", "cirrhosis is a late stage of" tell what the word means.
_DEFINES = re.compile(
    r"\A(?:an? )?(?:(?!(?:there|here|it|this|that|these|those|the|he|she|they|what|which|who|one|no|not|neither|yes) )"
    r"[\w-]+ ){1,4}?(?:(?:is|are) (?:an?|any|one of|when|where|defined|known|called|caused"
    r"|(?:usual|typical|common|general|normal)ly"
    r"|often|the (?:\w+ )?\w+ (?:of|in which|that|where))|means|occurs?|happens?|describes?|refers? to|develops?)\b"
    r"|\bis (?:an?|the) (?:\w+ )?(?:condition|disease|disorder|type|kind|term|procedure|process|technique|word)\b"
    r"|\brefers to\b|\bis defined\b"
)
# "It looks like a dog" may well go on "but is a cat".
_ONLY_LIKE = re.compile(r"\b(?:looks? like|resembl\w+|similar to|mistaken for|at first)\b")
# "Cardiomegaly without effusion" says what is there, and then what is not.
_BESIDES = re.compile(r",? (?:without|with no|and no) ")
_FAMILIES = (
    "red green blue yellow black white brown grey gray orange purple pink",
    "left right",
    "axial coronal sagittal",
    "t1 t2 flair dwi",
    "ct mri ultrasound mammogram xray x",
    "male female",
    "indoors outdoors",
    "indoor outdoor",
    "ap pa lateral",
)
_FAMILY_OF = {word: at for at, words in enumerate(_FAMILIES) for word in words.split()}
"""Words of which one is true of a thing where another one is not."""

_IS_ONE = re.compile(
    r"\b(?:is|are|was|were|appears|looks|seems)(?: to be)?(?: clearly| actually)?"
    r"(?: (?:located|situated|seen|shown|found|taken))?"
    r"(?: (?:in|on))?(?: (?:an?|the))? (?P<one>[a-z0-9]+)(?:[ -](?:weighted|sided|colou?red|ray))?"
    r"(?:\Z| (?:views?|images?|scans?|pictures?|planes?|sequences?|slices?|sections?|upper|lower|middle|lungs?|sides?"
    r"|lobes?"
    r"|breasts?|kidneys?|hemispheres?|eyes?|in colou?r|of (?:the|an?))\b)"
)
_IS_THIS_A = re.compile(
    r"\W*(?:is|are|was) (?:this|it|that|these|the (?:image|picture|scan|photo|patient|person))\b", re.IGNORECASE
)
_SUBJECTS = word_set("it this that image picture scan photo view one mri ct sequence plane patient person")
_OPEN_NUMBER = re.compile(r"\b(?:or|than|and)\b", re.IGNORECASE)
_ONLY_NOT = re.compile(
    r"\b(?:(?:am |is |are )?(?:unable|not able) to|fail(?:s|ed)? to|could not|i doubt(?: that)?"
    r"|(?:it is )?(?:very |highly )?(?:unlikely|doubtful)(?: that)?)\b"
)
_WORD = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
# It asks, and says nothing. Not from every place within it: that would take the square of its length.
_QUESTION = re.compile(r"(?<![^.!?\n])[^.!?\n]*+\?")
_SENTENCE = re.compile(r"(?<=\w)[.!?]\s+|\n")
_FEW = 5
_YES_ABROAD = re.compile(_any_of(_FOREIGN_YES), re.IGNORECASE)
_NO_ABROAD = re.compile(_any_of(_FOREIGN_NO.replace("нет ", "")), re.IGNORECASE)  # "изменений нет": there are none
_CLAUSE_ABROAD = re.compile(r"[.,;:!?…\n]+")
_ONLY_THAT = re.compile(r"\b(there|it|this|that)(?:'s| is| are) only\b", re.IGNORECASE)
_LABELLED = re.compile(r"(?m)(?:^\s*(?:A|R|TL;?DR|Reply)\s*[:-]|(?<=\?)\s+A:)\s*(?=\w)")
# Below it, "A: Yes" is the first item of a list.
_SECOND_ITEM = re.compile(r"(?m)^\W{0,4}B\s*[:.)-]")
_NO_DOUBT = re.compile(r"\b(?:no|without(?: a| any)?) (?:doubt|question)\b|\bnot only\b")


@dataclass(frozen=True)
class YesNo:
    """The two answers to a question; see `choice.Choices`.

    Attributes:
        keys: the words of the question that a sentence must have to be about it, stemmed.
        head: the one whose denial is a no ("dog" of "a dog on the sofa").
        exists: whether it asks, without a negation, if something is there.
        one: whether that is one object and no more is asked of it, so that "it", "one", "none" are that object.
        marks: the letters or digits that the question gives to yes and to no.
        negated: whether it has a negation, so that sentences may answer it either way.
        asked: the question itself.
    """

    keys: tuple[str, ...] = ()
    head: str = ""
    exists: bool = False
    one: bool = False
    negated: bool = False
    asked: str = ""
    marks: tuple[tuple[str, str], ...] = ()
    says_no: ClassVar[bool] = True

    @classmethod
    def of(cls, question: str) -> YesNo:
        """The words of a question ("Is there a dog in the image?") or of the name of what it asks for ("a dog")."""
        marked = {mark.casefold(): answer.casefold() for mark, answer in _MARKED.findall(question)}
        if set(marked.values()) == {YES, NO} and len(marked) == 2:
            unmarked = cls.of(_MARKED.sub(" ", question).strip())
            return replace(unmarked, marks=tuple(marked.items()))
        spoken = _WHERE.sub(" ", _INTRODUCED.sub("", spelled_out(plain(question.rsplit("\n", 1)[-1]))))
        spoken = _PICTURE_SHOWS.sub("does it ", spoken.strip())
        words = _WORD.findall(spoken)
        exists = words[:2] in (["is", "there"], ["are", "there"]) or not {"is", "are", "does", "do"} & set(words[:1])
        shows = words[:1] in (["does"], ["do"]) and not _SHOWS.isdisjoint(words[1:7])
        exists = exists or shows
        stems = set(map(_stem, words))
        exists = exists or (not _LOOKS_FOR.isdisjoint(stems) and "normal" not in stems)
        framed = _PICTURES | _FRAME
        first = [w for w in _until(words, _PREPOSITIONS) if w not in _STOP and _stem(w) not in framed]
        every = tuple(dict.fromkeys(_stem(word) for word in words if word not in _STOP))
        # "Does the scan show a lesion?" is about the lesion; "Is this a scan?" about the scan.
        keys = tuple(key for key in every if key not in framed) or every
        if not keys:
            return cls(asked=question.rsplit("\n", 1)[-1])
        negated = bool({"not", *_NOUN_DENIED} & set(words))
        head = _stem(first[-1]) if exists and first else keys[-1]
        one = exists and not negated and set(keys) == set(map(_stem, first))
        return cls(keys, head, exists and not negated, one, negated, question.rsplit("\n", 1)[-1])

    def at(self, text: str) -> AnswerMatch | None:
        if match := _BOTH.match(text):
            return AnswerMatch(SEVERAL, match.end())
        if self.marks and (match := _MARK_ONLY.match(text)) and (value := dict(self.marks).get(match[1].casefold())):
            return AnswerMatch(value if (match["said"] or value).casefold() == value else SEVERAL, match.end())
        if (one_word := self._in_one_word(text)) is not None:
            return one_word
        if (match := _TAK.match(text)) and _ASKED_IN_POLISH.match(self.asked):
            return AnswerMatch(YES, match.end())
        if match := _NONE_OF_THESE.match(text):
            return AnswerMatch(OUTSIDE, match.end())
        if match := _MARK.match(text):
            return AnswerMatch(YES if match[1] == "✓" else NO, match.end())
        if _SI.match(text) and language_of(text[:200]) == "fr":
            return None  # it contradicts a question with a negation
        for value, pattern in ((NO, _NO_WORD), (YES, _YES_WORD)):
            if match := pattern.match(text):
                return AnswerMatch(value, match.end())
        return None

    def _in_one_word(self, text: str) -> AnswerMatch | None:
        if self.exists or (not self.negated and _THERE.search(self.asked)):
            for value, pattern in ((YES, _THERE), (NO, _NOT_THERE)):
                if match := pattern.match(text):
                    return AnswerMatch(value, match.end())
        polarity = {"normal", "abnormal"} & set(self.keys)
        if len(polarity) == 1 and not self.negated and (match := _IS_NORMAL.match(text)):
            return AnswerMatch(YES if (match["not"] is None) == ("normal" in polarity) else NO, match.end())
        return None

    def json_text(self, value: object) -> str | None:
        return {True: YES, False: NO}.get(value) if isinstance(value, bool) else None

    def stated(self, text: str) -> set[str]:
        """Yes where a clause states what was asked, no where one denies it; what else they say counts for nothing."""
        text = self._without_other_side(text)
        answers = self._as_field(text) | set(filter(None, (self._clause(clause) for clause in _clauses(text))))
        answers |= self._as_finding(text)
        if YES in answers and self._elsewhere(text):
            return set()  # "There is a mass, but it is in the right lung", of the left one
        if answers:
            return answers
        # "It shows the liver, with a mass in it": what was asked stands in more than one clause.
        sentences = re.split(r"[.!]\s|\n", _QUESTION.sub(" ", spelled_out(text)))
        return {YES} & {self._clause(" ".join(sentence.split())) for sentence in sentences if sentence.strip()}

    def answers_in_object(self, fields: Mapping[str, Any]) -> set[str]:
        answers = set()
        names = [value for key, value in fields.items() if key.casefold() in _NAMES and isinstance(value, str)]
        stems = {_stem(word) for name in names for word in _WORD.findall(name.casefold())}
        mine = not names or self.head in stems or bool(set(self.keys) & stems)
        flags = [key for key in fields if key.casefold().replace("_", " ") in _PRESENCE]
        for key, value in fields.items():
            words = {_stem(word) for word in _WORD.findall(key.casefold().replace("_", " ")) if word not in _STOP}
            flag = self.at(value) if isinstance(value, str) else None
            text = self.json_text(value) if flag is None else flag.value
            if text not in (YES, NO):
                continue
            # `{"bicycle": false}`, and any name where it is the only one: `{"present": true}`.
            if (set(self.keys) >= words and (words or len(fields) == 1)) or (self.exists and mine and flags == [key]):
                answers.add(text)
            elif words == {"abnormal"} and "normal" in self.keys and not self.negated:
                answers.add(NO if text == YES else YES)
        return answers

    def restated_answers(self, text: str) -> set[str]:
        """Those whose clause has the question's words and none besides that tell of something else."""
        answers, names_other = self._as_field(text), False
        for clause in _clauses(text):
            normal = _NORMAL.fullmatch(clause)
            if normal and {_stem(word) for word in _WORD.findall(normal["of"])} <= _PICTURES:
                answers |= set(filter(None, [self._by_normal(normal)]))
            raw = set(self._up_to_it(_WORD.findall(self._in_its_words(clause))))
            words = {_stem(word) for word in raw}
            strange_words = {word for word in raw - _SAYS_NOTHING if _stem(word) not in (*self.keys, *_FRAME)}
            is_bare = self.one and not names_other and self._bare(clause) is not None
            said_back = self.keys and set(self.keys) <= words and not strange_words
            if (is_bare or said_back) and (value := self._clause(clause)):
                answers.add(value)
            names_other = names_other or (bool(strange_words) and not is_bare)
        return answers

    def _up_to_it(self, words: Sequence[str]) -> Sequence[str]:
        """The words of a clause up to the one object asked about: what follows "there is a dog" tells where and how."""
        last = max((at for at, word in enumerate(words) if _stem(word) == self.head), default=len(words))
        goes_on = set(words[last + 1 : last + 2]) - _TELL_WHERE
        is_said = self.one and not _DENYING & set(words) and bool(_VERBS & set(words[:last]))
        return words[: last + 1] if is_said and all(w.endswith(("ing", "ed")) for w in goes_on) else words

    def opposed(self, text: str, value: str) -> bool:
        if self.stated(text) - {value}:
            return True
        if value == YES and self.exists and (named := _THERE_IS.match(text)):
            words = {_stem(word) for word in _until(_WORD.findall(named["what"].casefold()), _TELL_WHERE)}
            if self.head not in words and words - _BARE - set(self.keys):
                return True  # "Yes, there is a cat", of a dog
        if any(map(self._turned, _clauses(text))):
            return True
        return bool((self._begun(text) | {part[1].casefold() for part in _PART.finditer(text)}) - {value})

    def _turned(self, clause: str) -> bool:
        """Whether a clause has the question's words in another order: of "a above b", "b is above a"."""
        stems = [_stem(word) for word in _WORD.findall(clause)]
        question_stems = [_stem(word) for word in _WORD.findall(spelled_out(self.asked))]
        return set(self.keys) <= set(stems) and turned(question_stems, stems, self.keys)

    def _begun(self, text: str) -> set[str]:
        """The answers that sentences begin with, and in other languages that clauses begin or end with."""
        sentences = _SENTENCE.split(text)
        if foreign := is_foreign(text):
            # "Ja, die Aufnahme ist unscharf, aber" grants something else.
            sentences = [s for s in sentences if not contrasts_abroad(s)]
        begun = {match.value for s in sentences if (match := self.at(s.lstrip(" \"'(")[:60])) is not None}
        if not foreign:
            return begun
        # "Entonces sí", "also nein".
        for clause in _CLAUSE_ABROAD.split("\n".join(sentences)):
            words = clause.strip(" \"'()")[:60].split()
            last_word = words[-1:] if len(words) < _FEW else []
            begun |= {YES for word in last_word if _YES_ABROAD.fullmatch(word)} | {
                NO for word in last_word if _NO_ABROAD.fullmatch(word)
            }
        return begun

    def contradicts(self, text: str, value: str) -> bool:
        if is_foreign(text):
            return bool(self._begun(text) - {value})
        return self.exists and bool(self.stated(text) - {value})

    def mentioned(self, text: str) -> set[str]:
        return set()

    def foreign_answers(self, text: str) -> set[str]:
        answers = restated(text, self.asked, _STOP | _FRAME | _LOOKS_FOR)
        denied = self.exists and denies_abroad(text)
        return {NO} if not answers and denied else answers

    def when_unsure(self, text: str) -> str | None:
        return None

    def _clause(self, clause: str) -> str | None:
        if self.negated or leaves_open(clause):
            return None
        if (bare := self._bare(clause)) is not None:
            return bare
        if _ONLY_LIKE.search(clause) or _DEFINES.search(clause) or _DENIES_SAYING.search(clause):
            return None
        if (normal := _NORMAL.fullmatch(clause)) and (by_normal := self._by_normal(normal)) is not None:
            return by_normal
        if _NOTHING_WRONG.fullmatch(clause) and {"normal", "abnormal"} & set(self.keys):
            return YES if "normal" in self.keys else NO
        clause = self._in_its_words(clause)
        words = _WORD.findall(clause)
        if not self.keys or {"not", "excluded", "ruled", "confirm", "verify"} & set(words) > {"not"}:
            return None
        stems = [_stem(word) for word in words]
        is_turned = self._turned(clause)
        if (self.exists or not is_turned) and (self._denied(words, stems) or self._otherwise(clause)):
            return NO
        if is_turned:
            return None
        if (front := _BESIDES.split(clause, maxsplit=1)[0]) != clause:
            return self._clause(front)
        if {"not", *_NOUN_DENIED, *_GONE, "never", "unlike"} & set(words) or not _VERBS & set(words):
            return None
        stands_in = not self.exists and len(self.keys) > 1 and words[0] in ("he", "she", "it", "they")
        needed = self.keys[1:] if stands_in else self.keys
        return YES if set(needed) <= set(stems) else None

    def _bare(self, clause: str) -> str | None:
        """Read "there is one" and "I do not see it on the left"; None of a clause with a word of its own.

        Where one object is asked about, it may be anywhere; what is not in one place may be in another one.
        """
        words = _WORD.findall(_STANDS_FOR.sub("one", _WHERE.sub(" ", clause)))
        front = list(_until(words, _TELL_WHERE))
        behind = {_stem(word) for word in words[len(front) :]} - _STOP - _BARE
        if (
            not front
            or not _BARE.issuperset(front)
            or _BARE_VERBS.isdisjoint(front)
            or not _COUNTS.isdisjoint(self.keys)
        ):
            return None
        denied = sum(word in _DENYING for word in front) % 2 == 1
        names_it = not _STAND_IN.isdisjoint(front) and front[0] not in ("it", "this", "that")
        anywhere = self.one and not denied and (names_it or behind <= _SAYS_NOTHING)
        return (NO if denied else YES) if anywhere or behind <= {*self.keys, *_PICTURES} else None

    def _otherwise(self, clause: str) -> bool:
        """Whether a clause says another one of the family of what was asked for: "is green", asked if it is red."""
        question_words = [word.split("-")[0] for word in _WORD.findall(spelled_out(self.asked))]
        members = [word for word in question_words if word in _FAMILY_OF]
        if self.exists or not members or _OPEN_NUMBER.search(self.asked):
            return False
        # "Is this an axial CT?" asks for both.
        sought = members if _IS_THIS_A.match(self.asked) else members[-1:]
        clause_words = [word.split("-")[0] for word in _WORD.findall(clause)]
        if {"not", *_NOUN_DENIED} & set(clause_words):
            return False
        for match in _IS_ONE.finditer(clause):
            family = _FAMILY_OF.get(match["one"])
            instead = [word for word in sought if _FAMILY_OF[word] == family]
            if not instead or set(instead) & set(clause_words):
                continue
            subject = {_stem(word) for word in _WORD.findall(clause[: match.start()])} - _STOP
            topic = {self.keys[0]} - {_stem(word) for word in members}
            if (topic and topic <= subject) or (
                subject <= _SUBJECTS and (match.end() == len(clause) or _IS_THIS_A.match(self.asked))
            ):
                return True
        return False

    def _elsewhere(self, text: str) -> bool:
        """Whether a text names the other side than the question does."""
        others = {_OPPOSITE[key] for key in self.keys if key in _OPPOSITE} - set(self.keys)
        return bool(others) and not others.isdisjoint(_WORD.findall(text.casefold()))

    def _without_other_side(self, text: str) -> str:
        """A text without the sentences that deny something of the other side: "Right kidney: no hydronephrosis"."""
        sides = _OPPOSITE.keys() & set(self.keys)
        others = {_OPPOSITE[side] for side in sides} - sides
        if not others:
            return text
        parts = _SENTENCE.split(text)
        words = [set(_WORD.findall(spelled_out(part))) for part in parts]
        of_others = [bool(others & w) and not sides & w and bool({"not", *_NOUN_DENIED} & w) for w in words]
        return ". ".join(part for part, is_of_other in zip(parts, of_others, strict=True) if not is_of_other)

    def _as_finding(self, text: str) -> set[str]:
        """Read a line of findings: "Small left apical pneumothorax." """
        if not self.exists:
            return set()
        for match in _FINDING_LINE.finditer(text.casefold()):
            words = _WORD.findall(match["said"] or match["one"])
            stems = [_stem(word) for word in words]
            names_it = set(stems) >= set(self.keys) and stems[-1] == self.head
            if names_it and all(
                w in _OF_FINDINGS or _NTH.fullmatch(w) or s in self.keys for w, s in zip(words, stems, strict=True)
            ):
                return {YES}
        return set()

    def _as_field(self, text: str) -> set[str]:
        """Read a line of a form: "Pleural effusion: absent"."""
        answers = set()
        for match in _FIELD.finditer(text.casefold()):
            words = {_stem(word) for word in _WORD.findall(match["name"]) if word not in _STOP}
            if words and words == set(self.keys) and not self.negated:
                answers.add(NO if match["no"] else YES)
        return answers

    def _by_normal(self, normal: re.Match[str]) -> str | None:
        """A no to a question about a finding, where what it would be a finding of is called normal."""
        parts = {_stem(word) for word in _WORD.findall(normal["of"])}
        if parts & set(self.keys) and set(self.keys) - parts and set(self.keys) - parts <= _NOT_NORMAL:
            return NO  # "The heart is normal in size", asked if it is enlarged
        if not self.exists or not (self.head in _FINDINGS or _FINDING_ENDING.search(self.head)):
            return None
        whole = bool(parts) and parts <= _PICTURES
        return NO if whole or parts & set(self.keys) or ("lung" in parts and self.head in _OF_LUNGS) else None

    def _in_its_words(self, clause: str) -> str:
        """A clause that says normal or abnormal, with the one that was asked about."""
        if "normal" in self.keys:
            return _ABNORMAL.sub("not normal", clause).replace("unremarkable", "normal")
        return clause

    def _denied(self, words: Sequence[str], stems: Sequence[str]) -> bool:
        first = stems.index(self.head) if self.head in stems else len(stems)
        for at, word in enumerate(words):
            after, named_before = stems[at + 1 : at + 7], first < at
            if word in _NOUN_DENIED and "or" in after:
                after = stems[at + 1 : at + 25]
            if word in _NOUN_DENIED and (self.head in after or self.keys[0] in after[:3]):
                return True
            if word == "free" and words[at + 1 : at + 2] in (["of"], ["from"]) and self.head in after[:4]:
                return True
            if word in _GONE and named_before:
                return True
            if word == "not":
                if self.head in after or (
                    words[at + 1 : at + 2] and len(self.keys) > 1 and set(self.keys[1:]) <= set(after)
                ):
                    return True
                if named_before and _SEEN & set(words[at + 1 : at + 3]):
                    return True
        return False


def read_yes_no(reply: str, question: str = "", *, cut: bool = False) -> Reading:
    """Yes, no, or why neither can be read.

    Args:
        reply: all that the model wrote.
        question: what was asked, or the name of the object that was asked for ("a dog"). Without it a sentence such as
            "There is a dog." says nothing, for there is nothing that it could be about.
        cut: whether the reply ended because it had become too long.

    Example:
        >>> print(read_yes_no("No."), read_yes_no("There is a cat.", "Is there a dog in the image?"))
        no (line) unreadable: no answer
    """
    choices = YesNo.of(question)
    read = choose(reply if _SECOND_ITEM.search(reply) else _LABELLED.sub("Answer: ", reply), choices, cut=cut)
    own_question = _QUESTION.match(reply)
    stems = {_stem(word) for word in _WORD.findall(own_question[0].casefold())} if own_question else set()
    if read.basis in (LINE, OPENING) and stems - _SAYS_NOTHING and stems.isdisjoint(choices.keys):
        return Reading(read.value, LEADING)  # "Are the lungs expanded? Yes.", asked about something else
    return read


def _clauses(text: str) -> Iterator[str]:
    text = _ONLY_THAT.sub(r"\1 only ", text)
    spoken = _ONLY_NOT.sub("can not", _NO_DOUBT.sub(" ", spelled_out(text)))
    spoken = _LISTED.sub(lambda match: _LIST_COMMA.sub(" or ", match[0]), _QUESTION.sub(" ", spoken))
    for piece in _CLAUSE.split(spoken):
        if clause := " ".join(piece.split()).strip(" \"'()-"):
            yield clause


def _until(words: Sequence[str], ends: frozenset[str]) -> Iterator[str]:
    for at, word in enumerate(words):
        if at and word in ends:
            return
        yield word


@cache
def _stem(word: str) -> str:
    """Without the endings of plurals and participles, roughly: both sides of every comparison are cut alike."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    for ending, least, instead in (
        ("ies", 5, "y"),
        ("sses", 5, "ss"),
        ("ches", 5, "ch"),
        ("shes", 5, "sh"),
        ("xes", 4, "x"),
    ):
        if word.endswith(ending) and len(word) >= least:
            return word.removesuffix(ending) + instead
    if word.endswith("ing") and len(word) > 5:
        return word.removesuffix("ing")
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3 else word
